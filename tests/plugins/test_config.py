"""Configs read strictly: every field of its type, or an error that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import ConfigError
from weightloom.plugins import PluginManager
from weightloom.plugins.configs.config import read, refuse_unless, unread_fields


@dataclass(frozen=True)
class Fields:
    size: int
    eps: float = 1e-6
    act: str = "silu"
    bias: bool = False
    window: int | None = None
    kinds: tuple[str, ...] = ()
    limits: tuple[float, ...] = ()
    mode: Literal["a", "b"] = "a"
    more: Mapping[str, Any] = field(default_factory=dict)


def test_fields_by_name_defaults_and_what_is_not_read() -> None:
    content = {"size": 3, "eps": 1, "kinds": ["x", "y"], "window": None, "torch_dtype": "float32", "more": {"k": 1}}
    assert read(Fields, content) == Fields(3, 1.0, kinds=("x", "y"), more={"k": 1})
    assert unread_fields(Fields, content) == ("torch_dtype",)
    assert read(Fields, {"n_embd": 4}, {"size": "n_embd"}).size == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("size", wrong) for wrong in (None, "3", 3.0, True, [3])),
        *(("eps", wrong) for wrong in ("1e-6", None, True, 10**400, 1e39, float("inf"), float("nan"))),
        *(("bias", wrong) for wrong in (0, 1, "no", None)),
        *(("act", wrong) for wrong in (1, None, ["silu"])),
        *(("window", wrong) for wrong in ("4", 4.0, False)),
        *(("kinds", wrong) for wrong in ("x", [1], {"x": 1})),
        *(("mode", wrong) for wrong in ("c", None, 1)),
        *(("more", wrong) for wrong in ([], None, "x")),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_the_field(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as raised:
        read(Fields, {"size": 1, name: value})
    assert raised.value.field == name and name in str(raised.value)


def test_a_limit_beyond_all_numbers_is_taken() -> None:
    assert read(Fields, {"size": 1, "limits": [0, 1e308, float("inf")]}).limits == (0.0, 1e308, float("inf"))
    with pytest.raises(ConfigError, match="limits"):
        read(Fields, {"size": 1, "limits": [0.0, float("nan")]})


def test_a_field_that_is_needed_and_lacks_is_named() -> None:
    with pytest.raises(ConfigError, match="the config has no 'size'") as raised:
        read(Fields, {})
    assert (raised.value.field, raised.value.hint) == ("size", "complete config.json")
    with pytest.raises(ConfigError, match="the config has no 'size'") as raised:
        read(Fields, {"sizes": 3, "eps": 1.0})
    assert raised.value.hint == "it has 'sizes': is that the one?"
    with pytest.raises(ConfigError, match="heads is 3"):
        refuse_unless(False, "heads", 3, "an even number")
    refuse_unless(True, "heads", 4, "an even number")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
NAMES = [
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "head_dim"),
    *("num_key_value_heads", "hidden_act", "rms_norm_eps", "layer_norm_eps", "rope_theta", "rope_scaling"),
    *("rope_parameters", "sliding_window", "layer_types", "num_local_experts", "num_experts", "mlp_only_layers"),
    *("max_position_embeddings", "tie_word_embeddings", "type_vocab_size", "position_embedding_type"),
]


@given(
    kind=st.sampled_from(["bert", "llama", "mistral", "mixtral", "qwen3_moe"]),
    changes=st.dictionaries(st.sampled_from(NAMES), json_values, max_size=4),
)
def test_no_config_gets_out_as_anything_but_a_named_error(kind: str, changes: dict[str, Any]) -> None:
    from tests.runtime.models import config_of

    architecture = PluginManager().architecture(kind)
    try:
        architecture.read_config({**config_of(kind), **changes})
    except ConfigError as error:
        assert error.field
