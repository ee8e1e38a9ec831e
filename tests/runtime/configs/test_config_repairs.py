"""C24 to C27, and the numbers that people's configs have: repaired by field, listed, and saved as found."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.fixtures import write
from tests.runtime.models import config_of, write_model
from weightloom.engine.errors import ConfigError
from weightloom.plugins import PluginManager
from weightloom.plugins.architectures.llama import Fields
from weightloom.plugins.configs.repair import repaired_numbers
from weightloom.runtime import load
from weightloom.runtime.model import LoadedModel

TOKENS = mx.array([[1, 2, 3]])


def loaded(folder: Path, name: str = "llama", **changes: Any) -> LoadedModel:
    """Load a tiny model whose config was changed afterwards."""
    write_model(folder, name)
    (folder / "config.json").write_text(json.dumps(config_of(name, **changes)))
    return load(folder)


@pytest.mark.parametrize(
    ("changes", "repair"),
    [
        ({"hidden_size": "32"}, "hidden_size is '32'; read as the number 32"),
        ({"num_attention_heads": 4.0}, "num_attention_heads is 4.0; read as the number 4"),
        ({"rms_norm_eps": "1e-6"}, "rms_norm_eps is '1e-6'; read as the number 1e-06"),
        ({"rms_norm_eps": None}, "rms_norm_eps is null where a number is wanted; read as if it were absent"),
        ({"rope_theta": "10000"}, "rope_theta is '10000'; read as the number 10000.0"),
        ({"rope_theta": None}, "rope_theta is null where a number is wanted; read as if it were absent"),
        (
            {"rope_parameters": {"rope_theta": "1e4", "rope_type": "default"}},
            "rope_parameters.rope_theta is '1e4'; read as the number 10000.0",
        ),
        (
            {"rope_parameters": {"full_attention": {"rope_theta": "1e4"}}},
            "rope_parameters.full_attention.rope_theta is '1e4'; read as the number 10000.0",
        ),
    ],
)
def test_a_number_is_repaired_listed_and_saved_as_found(tmp_path: Path, changes: dict[str, Any], repair: str) -> None:
    m = loaded(tmp_path / "odd", **changes)
    assert f"config.json: {repair}" in m.notes
    plain = load(write_model(tmp_path / "plain", "llama"))
    assert mx.array_equal(m.model(TOKENS), plain.model(TOKENS)).item()
    for layout in ("original", "hf"):
        m.save(tmp_path / layout, layout=layout)
        assert (tmp_path / layout / "config.json").read_bytes() == (tmp_path / "odd/config.json").read_bytes()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", "wide"),
        ("hidden_size", None),
        ("hidden_size", "32.5"),
        ("hidden_size", 32.5),
        ("num_hidden_layers", True),
        ("rms_norm_eps", "nan"),
        ("rms_norm_eps", "inf"),
        pytest.param("rms_norm_eps", math.nan, marks=pytest.mark.case("C26")),
        ("rope_theta", "ten thousand"),
        ("tie_word_embeddings", "false"),
        ("head_dim", ""),
        ("layer_types", "full_attention"),
        ("layer_types", ["full_attention", "full_attention", 3]),
    ],
)
def test_what_stands_for_no_number_is_named_with_its_value(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, **{field: value})
    assert caught.value.field == field and caught.value.expected
    assert repr(value) in str(caught.value) or str(value) in str(caught.value)


def test_layers_far_beyond_what_the_file_has_are_refused_before_any_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="num_hidden_layers is 3000000, and the checkpoint has 30 tensors") as caught:
        loaded(tmp_path, num_hidden_layers=3_000_000)
    assert (caught.value.field, caught.value.file) == ("num_hidden_layers", str(tmp_path / "config.json"))


def test_a_size_that_no_array_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="num_attention_heads is 1000000000") as caught:
        loaded(tmp_path, num_attention_heads=10**9, num_key_value_heads=10**9, head_dim=16)
    assert caught.value.file == str(tmp_path / "config.json")


@pytest.mark.parametrize("name", ["llama", "mistral", "mixtral", "qwen3_moe"])
def test_head_dim_may_be_null_or_absent(name: str) -> None:
    read = PluginManager().architecture(name).read_config
    content = {**config_of(name), "head_dim": None}
    assert read(content) == read({key: value for key, value in content.items() if key != "head_dim"})


def test_a_null_that_a_family_understands_stays() -> None:
    content = {**config_of("mixtral"), "num_key_value_heads": None, "head_dim": None}
    fields = PluginManager().architecture("mixtral").fields
    assert fields is not None and repaired_numbers(fields, content).content == content


SECTIONS = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}


@pytest.mark.case("C24", "C25")
@pytest.mark.parametrize(
    ("changes", "thetas"),
    [
        ({"rope_theta": 5e5}, {5e5}),
        ({"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}}, {5e5}),
        ({"rope_theta": 5e5, "rope_scaling": None, "head_dim": None}, {5e5}),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, {5e5}),
        (
            {
                "rope_parameters": SECTIONS,
                "sliding_window": 4,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            },
            {1e6, 1e4},
        ),
    ],
)
def test_c24_each_form_of_rotary_settings_is_read_and_saved_as_it_was(
    tmp_path: Path, changes: dict[str, Any], thetas: set[float]
) -> None:
    """C24: the base frequency wherever it is, and the form that was read is the form that is saved."""
    m = loaded(tmp_path / "in", **changes)
    found = {rope.rotation.theta for rope in m.architecture.read_config(m.config).ropes.values()}
    assert found == thetas and m.report.repaired == ()
    for layout in ("original", "hf"):
        m.save(tmp_path / layout, layout=layout)
        assert (tmp_path / layout / "config.json").read_bytes() == (tmp_path / "in/config.json").read_bytes()


values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)


@given(st.dictionaries(st.sampled_from([*Fields.__dataclass_fields__, "rope_theta", "rope_scaling"]), values))
def test_repairing_twice_is_repairing_once(content: dict[str, Any]) -> None:
    once = repaired_numbers(Fields, content)
    again = repaired_numbers(Fields, once.content)
    assert again.content == once.content and again.repairs == ()


@pytest.mark.case("C27")
@pytest.mark.parametrize("form", [{}, None])
def test_c27_an_empty_quantization_is_none(tmp_path: Path, form: object) -> None:
    """C27."""
    assert loaded(tmp_path, quantization_config=form).model(TOKENS).shape == (1, 3, 260)


@pytest.mark.case("C27")
@pytest.mark.parametrize("field", ["quantization", "quantization_config"])
def test_c27_a_config_that_claims_packed_weights_that_are_not(tmp_path: Path, field: str) -> None:
    """C27."""
    with pytest.raises(ConfigError, match="4 bits in groups of 32, and no tensor of") as caught:
        loaded(tmp_path, **{field: {"group_size": 32, "bits": 4}})
    assert caught.value.field == field and str(tmp_path / "config.json") == caught.value.file
    assert "model.safetensors" in str(caught.value)


@pytest.mark.case("C27")
def test_c27_no_method_named_and_packed_weights_are_mlx_affine(tmp_path: Path) -> None:
    """C27."""
    path = write_model(tmp_path, "llama")
    stored: dict[str, mx.array] = dict(mx.load(str(path / "model.safetensors")))  # type: ignore[arg-type]
    name = "model.layers.0.self_attn.q_proj"
    packed, scales, biases = mx.quantize(stored[f"{name}.weight"], group_size=32, bits=4)
    stored |= {f"{name}.weight": packed, f"{name}.scales": scales, f"{name}.biases": biases}
    write(path / "model.safetensors", {key: np.array(array) for key, array in stored.items()})
    config = config_of("llama", quantization_config={"group_size": 32, "bits": 4})
    (path / "config.json").write_text(json.dumps(config))
    module = load(path).model.model.layers[0].self_attn.q_proj
    assert (module.bits, module.group_size, module.mode) == (4, 32, "affine")


@pytest.mark.case("C26")
def test_c26_numbers_without_bound(tmp_path: Path) -> None:
    """C26: what no field needs is read as it is, names stay, and a bound where a number is needed is refused."""
    m = loaded(tmp_path, time_step_limit=[0.0, math.inf], lo=-math.inf, x=math.nan, _name_or_path="Infinity-7B")
    assert m.config["time_step_limit"] == [0.0, math.inf] and m.config["lo"] == -math.inf
    assert math.isnan(m.config["x"]) and m.config["_name_or_path"] == "Infinity-7B"
    m.save(tmp_path / "again")
    text = (tmp_path / "again/config.json").read_text()
    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert found["time_step_limit"][1] == math.inf and found["_name_or_path"] == "Infinity-7B" and found["x"] is None
