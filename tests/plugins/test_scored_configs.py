"""What configs of scored experts and latent attention may say, and what is refused, by field."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.families.experts_b import FAMILIES
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures import bailing_moe, deepseek_v2, deepseek_v3, deepseek_v32, exaone_moe, minimax_m2

READERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "bailing_moe": bailing_moe.read_config,
    "deepseek_v2": deepseek_v2.read_config,
    "deepseek_v3": deepseek_v3.read_config,
    "deepseek_v32": deepseek_v32.read_config,
    "exaone_moe": exaone_moe.read_config,
    "glm4_moe_lite": deepseek_v3.read_lite,
    "minimax_m2": minimax_m2.read_config,
}
CONFIGS = {family.model_type: family.config(family.cases[0]) for family in FAMILIES}

REFUSED = [
    ("deepseek_v3", "n_group", {"n_group": 3, "topk_group": 2}),
    ("deepseek_v3", "n_group", {"n_group": 8, "topk_group": 4}),
    ("deepseek_v3", "topk_group", {"topk_group": 5}),
    ("deepseek_v3", "num_experts_per_tok", {"num_experts_per_tok": 5}),
    ("deepseek_v3", "num_experts_per_tok", {"n_group": 1, "topk_group": 1, "num_experts_per_tok": 9}),
    ("deepseek_v3", "n_shared_experts", {"n_shared_experts": -1}),
    ("deepseek_v3", "moe_layer_freq", {"moe_layer_freq": 0}),
    ("deepseek_v3", "kv_lora_rank", {"kv_lora_rank": 0}),
    ("deepseek_v3", "q_lora_rank", {"q_lora_rank": -1}),
    ("deepseek_v3", "qk_rope_head_dim", {"qk_rope_head_dim": 7}),
    ("deepseek_v2", "topk_method", {"topk_method": "noaux_tc"}),
    ("deepseek_v32", "q_lora_rank", {"q_lora_rank": None}),
    ("deepseek_v32", "index_topk", {"index_topk": 0}),
    ("deepseek_v32", "index_head_dim", {"index_head_dim": 4}),
    ("glm4_moe_lite", "mlp_layer_types", {"mlp_layer_types": ["dense"]}),
    ("glm4_moe_lite", "mlp_layer_types", {"mlp_layer_types": ["dense", "wide", "sparse"]}),
    ("minimax_m2", "rotary_dim", {"rotary_dim": 17}),
    ("bailing_moe", "num_experts", {"num_experts": 0}),
    ("bailing_moe", "num_shared_experts", {"num_shared_experts": -1}),
    ("bailing_moe", "use_bias", {"use_bias": True}),
    ("bailing_moe", "norm_head", {"norm_head": True, "tie_word_embeddings": True}),
    ("bailing_moe", "rotary_dim", {"rotary_dim": 0}),
    ("bailing_moe", "score_function", {"score_function": "relu"}),
    ("exaone_moe", "sliding_window_pattern", {"sliding_window_pattern": "LLX"}),
    ("exaone_moe", "sliding_window", {"sliding_window": None, "layer_types": ["sliding_attention"] * 3}),
]


@pytest.mark.parametrize(("name", "field", "changes"), REFUSED)
def test_the_field_is_named(name: str, field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        READERS[name]({**CONFIGS[name], **changes})
    assert caught.value.field == field


def test_letters_spell_which_layers_slide() -> None:
    content = {**CONFIGS["exaone_moe"], "sliding_window_pattern": "LG"}
    assert exaone_moe.read_config(content).dense.windows == (9, None, 9)
    given = {**content, "layer_types": ["full_attention", "full_attention", "sliding_attention"]}
    assert exaone_moe.read_config(given).dense.windows == (None, None, 9)


def test_without_a_window_nothing_slides() -> None:
    assert exaone_moe.read_config({**CONFIGS["exaone_moe"], "sliding_window": None}).dense.windows == (None, None, None)


def test_normed_weights_of_deepseek_v2_are_not_scaled() -> None:
    content = {**CONFIGS["deepseek_v2"], "routed_scaling_factor": 3.0}
    assert deepseek_v2.scoring_of(deepseek_v2.read_config(content).fields).scale == 3.0
    normed = deepseek_v2.scoring_of(deepseek_v2.read_config({**content, "norm_topk_prob": True}).fields)
    assert (normed.normalise, normed.scale) == (True, 1.0)


def test_layers_may_have_experts_at_intervals() -> None:
    fields = deepseek_v3.read_config({**CONFIGS["deepseek_v3"], "moe_layer_freq": 2, "first_k_dense_replace": 0}).fields
    assert [fields.is_sparse(layer) for layer in range(3)] == [True, False, True]
