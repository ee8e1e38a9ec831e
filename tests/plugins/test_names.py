"""Fields by two names: read by either, refused where they differ, and named in errors as the config has them."""

from collections.abc import Mapping
from typing import Any

import pytest

from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.gpt_neox import GPT_NEOX
from weightloom.plugins.architectures.llama import EXAONE, INTERNLM3

SIZES = {"vocab_size": 8, "hidden_size": 32, "intermediate_size": 8, "num_attention_heads": 2}
OURS = {**SIZES, "num_hidden_layers": 2, "num_key_value_heads": 2}


def refused(content: Mapping[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        EXAONE.read_config(content)
    return caught.value


def test_published_names_are_read() -> None:
    content = {**OURS, "num_layers": 2, "layer_norm_epsilon": 0.5, "activation_function": "relu"}
    del content["num_hidden_layers"]
    fields = EXAONE.read_config(content).fields
    assert (fields.num_hidden_layers, fields.rms_norm_eps, fields.hidden_act) == (2, 0.5, "relu")
    read = INTERNLM3.read_config({**OURS, "qkv_bias": True, "bias": False})
    assert (read.attention.bias, read.attention.out_bias, read.fields.mlp_bias) == (True, False, False)
    rotation = GPT_NEOX.read_config({**OURS, "rotary_pct": 0.5, "rotary_emb_base": 500}).rope.rotation
    assert (rotation.dims, rotation.theta) == (8, 500.0)


def test_two_names_with_one_value_are_one() -> None:
    assert EXAONE.read_config({**OURS, "num_layers": 2}) == EXAONE.read_config(OURS)


def test_two_names_with_two_values_are_refused() -> None:
    error = refused({**OURS, "num_layers": 3})
    assert error.field == "num_layers" and "num_hidden_layers says, 2" in str(error)


@pytest.mark.parametrize("value", ["2", -1, None, 2.5])
def test_an_error_names_what_the_config_has(value: object) -> None:
    content = {name: each for name, each in OURS.items() if name != "num_hidden_layers"} | {"num_layers": value}
    error = refused(content)
    assert error.field == "num_layers" and error.seen.startswith("num_layers is")
    lacking = refused({name: each for name, each in OURS.items() if name != "num_hidden_layers"})
    assert lacking.field == "num_hidden_layers"
