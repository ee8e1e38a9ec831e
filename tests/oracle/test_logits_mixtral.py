"""Mixtral against the reference implementation: experts, a window, each form of the config."""

from pathlib import Path
from typing import Any

import pytest

from tests.oracle.logits import LENGTH, as_v4, assert_close, config_of, load, through_cache, whole, write_reference

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"sliding_window": 9},
        {"num_experts_per_tok": 1, "tie_word_embeddings": True},
        {"num_experts_per_tok": 4, "head_dim": 16},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 3000.0}},
    ],
    ids=str,
)
def test_logits(tmp_path: Path, values: dict[str, Any]) -> None:
    given = {"num_local_experts": 4, **values}
    tokens, reference = write_reference("MixtralForCausalLM", "MixtralConfig", tmp_path, LENGTH, **given)
    config = config_of(tmp_path)
    for form in (config, as_v4(config)):
        module = load(tmp_path, form)
        assert_close(whole(module, tokens), reference)
        assert_close(through_cache(module, tokens), reference)
