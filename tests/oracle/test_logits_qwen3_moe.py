"""Qwen3 with experts against the reference implementation: routing, dense layers, windows, each form of the config."""

from pathlib import Path
from typing import Any

import pytest

from tests.oracle.logits import LENGTH, as_v4, assert_close, config_of, load, through_cache, whole, write_reference

pytestmark = pytest.mark.oracle

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 16}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"norm_topk_prob": True},
        {"mlp_only_layers": [1]},
        {"decoder_sparse_step": 2, "tie_word_embeddings": True},
        {"use_sliding_window": True, "sliding_window": 9},
        {"attention_bias": True, "num_experts_per_tok": 3},
    ],
    ids=str,
)
def test_logits(tmp_path: Path, values: dict[str, Any]) -> None:
    given = {**EXPERTS, **values}
    tokens, reference = write_reference("Qwen3MoeForCausalLM", "Qwen3MoeConfig", tmp_path, LENGTH, **given)
    config = config_of(tmp_path)
    for form in (config, as_v4(config, num_local_experts="num_experts")):
        module = load(tmp_path, form)
        assert_close(whole(module, tokens), reference)
        assert_close(through_cache(module, tokens), reference)
