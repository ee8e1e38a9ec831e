"""What configs of recurrent families say in older or odd forms, and what of them is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.families.recurrent import FAMILIES
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures import kimi_linear, lfm2, olmo_hybrid, qwen3_next, recurrent_gemma, rwkv7
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.linear_fields import LINEAR

CONFIGS = {family.model_type: family.config(family.cases[0]) for family in FAMILIES}


def config_of(model_type: str, **changes: Any) -> dict[str, Any]:
    """Give the first case's config, changed; ... leaves a field out."""
    return {name: value for name, value in {**CONFIGS[model_type], **changes}.items() if value is not ...}


@pytest.mark.parametrize(
    ("said", "width"),
    [
        ({"block_ff_dim": 12288, "block_multiple_of": 256}, 8192),
        ({"block_ff_dim": 6656, "block_multiple_of": 256}, 4608),
        ({"intermediate_size": 100, "block_multiple_of": 32, "block_ffn_dim_multiplier": 1.5}, 128),
        ({"intermediate_size": 100, "block_ffn_dim_multiplier": None}, 66),
        ({"intermediate_size": 100, "block_auto_adjust_ff_dim": False}, 100),
    ],
)
def test_lfm2_feed_forward_widths(said: dict[str, Any], width: int) -> None:
    assert lfm2.read_dense(config_of("lfm2", **said)).inner == width


def test_lfm2_layers_by_number_and_an_older_tie() -> None:
    found = lfm2.read_dense(config_of("lfm2", layer_types=..., full_attn_idxs=[2], tie_embedding=False))
    assert found.types == (lfm2.CONV, lfm2.CONV, FULL)
    assert not found.fields.tied


def test_recurrent_gemma_block_types_by_their_first_name() -> None:
    found = recurrent_gemma.read_config(config_of("recurrent_gemma", _block_types=["attention", "recurrent"]))
    assert found.types == ("attention", "recurrent", "attention")


def test_linear_attention_but_for_every_fourth_layer() -> None:
    silent = {"layer_types": ..., "num_hidden_layers": 5}
    usual = (LINEAR, LINEAR, LINEAR, FULL, LINEAR)
    assert qwen3_next.read_config(config_of("qwen3_next", **silent)).types == usual
    assert olmo_hybrid.read_config(config_of("olmo_hybrid", **silent)).types == usual
    assert kimi_linear.read_config(config_of("kimi_linear", **silent)).types == (*(LINEAR,) * 4, FULL)


def test_olmo_hybrid_sizes_that_follow_from_others() -> None:
    sizes = dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), ...)
    sizes |= dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), ...)
    delta = olmo_hybrid.read_config(config_of("olmo_hybrid", **sizes)).delta
    assert (delta.key_heads, delta.value_heads, delta.key_dim, delta.value_dim) == (4, 4, 6, 12)


def test_rwkv7_width_that_follows_from_a_ratio() -> None:
    assert rwkv7.read_config(config_of("rwkv7", intermediate_size=None, hidden_ratio=3.1)).fields.inner == 128


@pytest.mark.parametrize(
    ("model_type", "field", "said"),
    [
        ("lfm2", "layer_types", {"layer_types": ["conv", "conv", "linear_attention"]}),
        ("recurrent_gemma", "block_types", {"block_types": ["attention", "mamba"]}),
        ("recurrent_gemma", "lru_width", {"lru_width": 30}),
        ("recurrent_gemma", "rope_scaling", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}),
        ("qwen3_next", "linear_num_value_heads", {"linear_num_value_heads": 3}),
        ("kimi_linear", "linear_attn_config.head_dim", {"linear_attn_config": {"head_dim": 0}}),
        ("kimi_linear", "linear_attn_config.num_heads", {"linear_attn_config": {"num_heads": "two"}}),
        (
            "kimi_linear",
            "linear_attn_config.full_attn_layers",
            {"layer_types": ..., "linear_attn_config": {"full_attn_layers": [1], "kda_layers": [1, 2]}},
        ),
        ("rwkv7", "attn", {"attn": {"layers": [0]}}),
        ("rwkv7", "value_dim", {"value_dim": [32, 64, 32]}),
        ("rwkv7", "head_dim", {"head_dim": 7}),
    ],
)
def test_what_cannot_be_is_refused_by_name(model_type: str, field: str, said: dict[str, Any]) -> None:
    readers = {
        "lfm2": lfm2.read_dense,
        "recurrent_gemma": recurrent_gemma.read_config,
        "qwen3_next": qwen3_next.read_config,
        "kimi_linear": kimi_linear.read_config,
        "rwkv7": rwkv7.read_config,
    }
    with pytest.raises(ConfigError) as caught:
        readers[model_type](config_of(model_type, **said))
    assert caught.value.field == field
