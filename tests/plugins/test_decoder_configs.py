"""What a text architecture's config may say, and what is refused, by field."""

from typing import Any

import pytest

from tests.plugins.tiny import CONFIGS
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures import llama, mixtral, qwen3_moe

READERS = {
    "llama": llama.read_llama,
    "mistral": llama.read_mistral,
    "mixtral": mixtral.read_config,
    "qwen3_moe": qwen3_moe.read_config,
}


def field_of(name: str, changes: dict[str, Any]) -> str | None:
    with pytest.raises(ConfigError) as caught:
        READERS[name]({**CONFIGS[name], **changes})
    return caught.value.field


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 0),
        ("hidden_size", None),
        ("hidden_size", 30),
        ("hidden_size", 2**31),
        ("num_hidden_layers", -1),
        ("num_attention_heads", 4.0),
        ("num_key_value_heads", 3),
        ("num_key_value_heads", 0),
        ("head_dim", 0),
        ("head_dim", 7),
        ("head_dim", 2**20),
        ("hidden_act", "tanhish"),
        ("rms_norm_eps", "1e-6"),
        ("rms_norm_eps", float("nan")),
        ("max_position_embeddings", 0),
        ("tie_word_embeddings", None),
        ("intermediate_size", True),
    ],
)
def test_every_number_is_checked(name: str, field: str, value: object) -> None:
    changes: dict[str, Any] = {field: value}
    if (field, value) == ("hidden_size", 30):
        changes["head_dim"] = None
    assert field_of(name, changes) == field


@pytest.mark.parametrize("field", ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"])
@pytest.mark.parametrize("name", READERS)
def test_a_lacking_field_is_named(name: str, field: str) -> None:
    content = {key: value for key, value in CONFIGS[name].items() if key != field}
    with pytest.raises(ConfigError, match=f"has no '{field}'"):
        READERS[name](content)


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_experts_are_checked(name: str) -> None:
    assert field_of(name, {"num_experts_per_tok": 5}) == "num_experts_per_tok"
    assert field_of(name, {"num_experts_per_tok": 0}) == "num_experts_per_tok"
    assert field_of(name, {"num_experts": 4, "num_local_experts": 8}) == "num_experts"


def test_the_number_of_experts_has_two_names() -> None:
    content = dict(CONFIGS["qwen3_moe"])
    content["num_local_experts"] = content.pop("num_experts")
    assert qwen3_moe.read_config(content) == qwen3_moe.read_config(CONFIGS["qwen3_moe"])


def test_sparse_layers() -> None:
    fields = qwen3_moe.read_config(
        {**CONFIGS["qwen3_moe"], "num_hidden_layers": 6, "mlp_only_layers": [3], "decoder_sparse_step": 2}
    ).fields
    assert [layer for layer in range(6) if fields.is_sparse(layer)] == [1, 5]
    assert field_of("qwen3_moe", {"decoder_sparse_step": 0}) == "decoder_sparse_step"


def test_windows() -> None:
    assert llama.read_mistral(CONFIGS["mistral"]).windows == (5, 5, 5)
    silent = {key: value for key, value in CONFIGS["mistral"].items() if key != "sliding_window"}
    assert llama.read_mistral(silent).windows == (4096,) * 3
    assert llama.read_mistral({**silent, "sliding_window": None}).windows == (None,) * 3
    assert field_of("mistral", {"sliding_window": 0}) == "sliding_window"
    assert llama.read_llama({**CONFIGS["llama"], "sliding_window": 5}).windows == (None,) * 3
    off = {**CONFIGS["qwen3_moe"], "sliding_window": 5}
    assert qwen3_moe.read_config(off).dense.windows == (None,) * 3
    assert qwen3_moe.read_config({**off, "use_sliding_window": True}).dense.windows == (5,) * 3


def test_layer_types() -> None:
    types = ["full_attention", "sliding_attention", "full_attention"]
    read = llama.read_llama({**CONFIGS["llama"], "sliding_window": 5, "layer_types": types})
    assert read.windows == (None, 5, None)
    assert field_of("llama", {"layer_types": types}) == "sliding_window"
    assert field_of("llama", {"layer_types": types[:2]}) == "layer_types"
    assert field_of("llama", {"layer_types": ["chunked_attention"] * 3}) == "layer_types"
    assert field_of("llama", {"layer_types": [*types[:2], None]}) == "layer_types"
    assert llama.read_llama({**CONFIGS["llama"], "layer_types": None}).layer_types == ("full_attention",) * 3


def windows_of(name: str, content: dict[str, Any]) -> Any:
    read = READERS[name](content)
    return getattr(read, "dense", read).windows


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen3_moe"])
def test_layer_types_follow_from_a_pattern_where_they_are_not_listed(name: str) -> None:
    slides = {**CONFIGS[name], "num_hidden_layers": 5, "sliding_window": 5, "use_sliding_window": True}
    wanted = (5, None, 5, None, 5)
    for absent in ({}, {"layer_types": None}):
        assert windows_of(name, {**slides, **absent, "sliding_window_pattern": 2}) == wanted
    assert READERS[name]({**slides, "sliding_window_pattern": None}) == READERS[name](slides)
    listed = {"layer_types": ["sliding_attention", "full_attention"] * 2 + ["sliding_attention"]}
    assert windows_of(name, {**slides, **listed, "sliding_window_pattern": 2}) == wanted
    nothing = {**slides, "sliding_window": None, "sliding_window_pattern": 2}
    assert windows_of(name, nothing) == (None,) * 5
    for wrong in (0, -2, "2", 2.5, True):
        assert field_of(name, {**slides, "sliding_window_pattern": wrong}) == "sliding_window_pattern"
    assert field_of(name, {**slides, **listed, "sliding_window_pattern": 3}) == "sliding_window_pattern"


def test_the_familys_own_defaults() -> None:
    assert mixtral.read_config(CONFIGS["mixtral"]).dense.ropes["full_attention"].rotation.theta == 1e6
    assert llama.read_llama(CONFIGS["llama"]).ropes["full_attention"].rotation.theta == 1e4
    assert mixtral.read_config(CONFIGS["mixtral"]).fields.rms_norm_eps == 1e-5
