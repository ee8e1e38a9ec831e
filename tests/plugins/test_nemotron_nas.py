"""What Nemotron NAS reads of each block, as published configs write them, and what it refuses by name."""

from typing import Any

import mlx.nn as nn
import pytest

from tests.families.family import SIZES
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.nemotron_nas import build, read_config

ATTENTION = {
    "n_heads_in_group": 2,
    "no_op": False,
    "num_sink_tokens": None,
    "replace_with_linear": False,
    "sparsify": None,
    "unshifted_sink": False,
    "use_prefill_window_in_sink_attention": False,
    "window_length": None,
}
FFN = {"ffn_mult": 13.0, "no_op": False, "replace_with_linear": False, "sparsify": None}


def config(attention: dict[str, Any] | None = None, ffn: dict[str, Any] | None = None) -> dict[str, Any]:
    block = {"attention": {**ATTENTION, **(attention or {})}, "ffn": {**FFN, **(ffn or {})}}
    return {**SIZES, "num_key_value_heads": None, "intermediate_size": None, "block_configs": [block] * 3}


def layer(content: dict[str, Any]) -> Any:
    return build(read_config(content)).decoder.blocks[1]


def test_heads_and_width_are_a_layers_own() -> None:
    found = layer(config())
    assert found.self_attn.k_proj.weight.shape == (16, 32)
    # Two thirds of 13 * 32, rounded up to a multiple of 256.
    assert found.mlp.gate_proj.weight.shape == (512, 32)


def test_what_is_not_there_has_no_norm() -> None:
    assert set(layer(config({"no_op": True, "n_heads_in_group": None})).children()) == {
        "post_attention_layernorm",
        "mlp",
    }
    assert set(layer(config(ffn={"no_op": True})).children()) == {"input_layernorm", "self_attn"}


def test_one_matrix_in_the_place_of_each() -> None:
    found = layer(config({"replace_with_linear": True}, {"replace_with_linear": True}))
    assert isinstance(found.self_attn.linear_attn, nn.Linear)
    assert isinstance(found.mlp.linear_mlp, nn.Linear)


@pytest.mark.parametrize(
    ("attention", "ffn", "field"),
    [
        ({"n_heads_in_group": 3}, {}, "block_configs[0].attention.n_heads_in_group"),
        ({"n_heads_in_group": None}, {}, "block_configs[0].attention.n_heads_in_group"),
        ({"window_length": 8}, {}, "block_configs[0].attention.window_length"),
        ({}, {"ffn_mult": -1.0}, "block_configs[0].ffn.ffn_mult"),
        ({}, {"sparsify": ["x"]}, "block_configs[0].ffn.sparsify"),
    ],
)
def test_what_does_not_fit_is_named(attention: dict[str, Any], ffn: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(config(attention, ffn))
    assert caught.value.field == field


def test_a_block_for_each_layer() -> None:
    with pytest.raises(ConfigError, match="num_hidden_layers, 3, entries"):
        read_config({**config(), "block_configs": config()["block_configs"][:2]})
