from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.raw_files import write_index
from weightloom.engine.checkpoints.index import parse_index, read_index
from weightloom.engine.errors import CheckpointError

INDEX = "model.safetensors.index.json"


def refused(raw: bytes | str, path: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        parse_index(raw if isinstance(raw, bytes) else raw.encode(), path)
    assert caught.value.file == str(path)
    assert caught.value.expected and caught.value.hint
    return caught.value


def test_gives_each_tensor_its_path(tmp_path: Path) -> None:
    path = write_index(tmp_path, {"b": "2.safetensors", "a": "1.safetensors", "c": "2.safetensors"})
    index = read_index(path)
    assert index.raw == path.read_bytes()
    assert index.files == (tmp_path / "1.safetensors", tmp_path / "2.safetensors")
    assert index.owners == {
        "b": tmp_path / "2.safetensors",
        "a": tmp_path / "1.safetensors",
        "c": tmp_path / "2.safetensors",
    }


def test_two_spellings_of_a_file_are_one(tmp_path: Path) -> None:
    index = read_index(write_index(tmp_path, {"a": "1.safetensors", "b": "./1.safetensors"}))
    assert index.files == (tmp_path / "1.safetensors",)


def test_other_keys_are_left_alone(tmp_path: Path) -> None:
    text = '{"metadata":null,"more":[1.5],"weight_map":{"a":"sub/1.safetensors"}}'
    assert parse_index(text.encode(), tmp_path / INDEX).files == (tmp_path / "sub/1.safetensors",)


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("", "not JSON"),
        (b"\xff", "not UTF-8"),
        ("[]", "not an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"weight_map":{"a":"1","a":"2"}}', "lists the name 'a' twice"),
        ('{"weight_map":{},"weight_map":{}}', "lists the name 'weight_map' twice"),
        ('{"metadata":{"total_size":NaN},"weight_map":{"a":"1"}}', "NaN"),
        ('{"metadata":{"total_size":' + "1" * 5000 + '},"weight_map":{"a":"1"}}', "integer"),
        ('{"weight_map":{"a":"\\ud800"}}', "half a surrogate pair"),
        ("{}", "the weight_map None"),
        ('{"weight_map":null}', "the weight_map None"),
        ('{"weight_map":["a"]}', "the weight_map ['a']"),
        ('{"weight_map":{}}', "the weight_map {}"),
        ('{"weight_map":{"a":1}}', "the file 1 for tensor 'a'"),
        ('{"weight_map":{"a":null}}', "the file None for tensor 'a'"),
        ('{"weight_map":{"a":["1"]}}', "the file ['1'] for tensor 'a'"),
    ],
    ids=range(16),
)
def test_an_unsound_index_is_refused(raw: str | bytes, seen: str, tmp_path: Path) -> None:
    assert seen in refused(raw, tmp_path / INDEX).seen


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "./",
        "..",
        "../1.safetensors",
        "sub/../../1.safetensors",
        "sub/../1.safetensors",
        "/etc/passwd",
        "//host/1.safetensors",
        "C:\\1.safetensors",
        "C:1.safetensors",
        "\\1.safetensors",
        "..\\1.safetensors",
        "sub\\..\\1.safetensors",
        "1\0.safetensors",
    ],
)
def test_a_file_name_that_may_leave_the_directory_is_refused(name: str, tmp_path: Path) -> None:
    error = refused(json.dumps({"weight_map": {"a": name}}), tmp_path / INDEX)
    assert error.field == "weight_map" and repr(name) in error.seen


def test_a_directory_that_leads_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "sub").symlink_to(tmp_path / "outside")
    (folder / "real").mkdir()
    (folder / "again").symlink_to(folder / "real")
    assert parse_index(b'{"weight_map":{"a":"again/1.safetensors"}}', folder / INDEX).files
    assert "sub/1" in refused('{"weight_map":{"a":"sub/1.safetensors"}}', folder / INDEX).seen


def test_an_index_too_large_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / INDEX
    with path.open("wb") as file:
        file.truncate(100_000_001)
    with pytest.raises(CheckpointError, match="an index of 100000001 bytes"):
        read_index(path)
