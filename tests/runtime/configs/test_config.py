from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.support import T0_CONFIG, checkpoint
from weightloom.engine.errors import CheckpointError, StorageError, WeightloomError
from weightloom.runtime.configs.config import Config, find_config, parse, read_config
from weightloom.runtime.opening.opening import open_path

PLACE = Path("config.json")


def config(values: object) -> Config:
    raw = json.dumps(values).encode()
    return Config(PLACE, raw, parse(raw, PLACE))


def test_the_deciding_fields() -> None:
    found = config({"architectures": ["BertModel", "Other"], "model_type": "bert"})
    assert (found.class_name, found.model_type, found.quantization) == ("BertModel", "bert", None)
    assert config({}).class_name is None and config({}).model_type is None


@pytest.mark.parametrize("empty", [None, []])
def test_no_architectures(empty: object) -> None:
    """Configs that were saved without a model have null there."""
    assert config({"architectures": empty}).class_name is None


@pytest.mark.parametrize("value", [None, 5, "", "  ", ["bert"], {}, True])
def test_a_model_type_that_is_no_name_is_an_error_that_names_field_and_file(value: object) -> None:
    with pytest.raises(CheckpointError, match="model_type is") as caught:
        _ = config({"model_type": value}).model_type
    assert (caught.value.field, caught.value.file) == ("model_type", "config.json")


@pytest.mark.parametrize("value", ["BertModel", [None], [""], [5, "x"], {}, 3])
def test_architectures_that_are_no_names(value: object) -> None:
    with pytest.raises(CheckpointError, match="architectures is") as caught:
        _ = config({"architectures": value}).class_name
    assert caught.value.field == "architectures"


def test_quantization_is_named_only() -> None:
    assert config({"quantization_config": {"quant_method": "gptq", "bits": 4}}).quantization == "gptq"
    assert config({"quantization": {"bits": 4}}).quantization == "no method named, in 'quantization'"
    assert config({"quantization_config": None}).quantization is None


def test_pythons_own_numbers_are_accepted() -> None:
    found = parse(b'{"a": NaN, "b": -Infinity, "c": Infinity}', PLACE)
    assert math.isnan(found["a"]) and found["b"] == -math.inf


def test_transformers_5_spells_what_json_has_no_digits_for_as_an_object() -> None:
    found = parse(b'{"a": [0.0, {"__float__": "Infinity"}], "b": {"__float__": 1}, "c": {"__float__": "NaN"}}', PLACE)
    assert found["a"] == [0.0, math.inf] and found["b"] == {"__float__": 1} and math.isnan(found["c"])


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'{"a": 1, "a": 2}', "'a' is there twice"),
        (b'{"x": {"a": 1, "a": 2}}', "'a' is there twice"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b"", "line 1 column 1"),
        (b'{"a": 1,,}', "not JSON"),
        (b'{"a": "\xff"}', "at byte 7"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "not JSON"),
        (b'{"a": 1}'.decode().encode("utf-16"), "not JSON"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "thousands of digits"),
    ],
)
def test_what_is_no_config(raw: bytes, text: str) -> None:
    with pytest.raises(CheckpointError, match=text) as caught:
        parse(raw, PLACE)
    assert caught.value.file == "config.json"


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: ("{" + text + "}").encode()))
def test_nothing_else_escapes(raw: bytes) -> None:
    with contextlib.suppress(WeightloomError):
        parse(raw, PLACE)


def test_where_it_is_looked_for(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    for path in (tmp_path, tmp_path / "model.safetensors", tmp_path / "model.safetensors.index.json"):
        found = find_config(path)
        assert found is not None and found.model_type == "bert"


def test_one_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError, match="cannot read"):
        find_config(tmp_path)
    (tmp_path / "as_folder.json").mkdir()
    with pytest.raises(StorageError, match="cannot read"):
        read_config(tmp_path / "as_folder.json")


def test_a_repaired_config_says_so_and_is_saved_as_strict_json(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    text = json.dumps({**T0_CONFIG, "time_step_limit": [0.0, math.inf], "_name_or_path": "Infinity-7B"})
    (path / "config.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    with open_path(path) as opened:
        found = opened.need_config()
        assert found.values["time_step_limit"] == [0.0, math.inf] and found.values["_name_or_path"] == "Infinity-7B"
        assert found.repairs[0] == "a byte-order mark is left out" and "Infinity is no JSON" in found.repairs[1]
        saved = opened.side_files()["config.json"]
    assert isinstance(saved, bytes)
    assert json.loads(saved, parse_constant=lambda name: pytest.fail(name)) == found.values
