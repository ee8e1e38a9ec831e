"""A header that is read as columns says what its JSON says; any other is left to the reader of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from weightloom.engine.checkpoints.header import parse_header
from weightloom.engine.checkpoints.header_columns import Columns, read_columns
from weightloom.engine.checkpoints.strict_json import parse_object, parse_regular, strings_in
from weightloom.engine.errors import CheckpointError
from weightloom.engine.spec import TensorSpec

NAMES = st.sampled_from(("a", "model.1.w", "é", "__metadata__", ":", "],[", "dtype"))
SHAPES = st.lists(st.integers(0, 12), max_size=3)
OFFSETS = st.tuples(st.integers(0, 99), st.integers(0, 99))
ENTRIES = st.lists(st.tuples(NAMES, st.sampled_from(("F32", "", "x")), SHAPES, OFFSETS), max_size=4)
METADATA = st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from(("", "v", "{}")))
INSERTS = st.sampled_from((*'"{}[],:019- .\\\n', "\t", "é", "٣", '"a":1,', '"a":"b",', "NaN", "true"))
OBJECTS = st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.lists(st.text(max_size=2)))
CHANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), INSERTS), max_size=2)


def text_of(metadata: dict[str, str] | None, entries: list[Any]) -> str:
    """A regular header; a name may be there twice."""
    parts = [] if metadata is None else [f'"__metadata__":{json.dumps(metadata, separators=(",", ":"))}']
    for name, dtype, shape, offsets in entries:
        fields = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        parts.append(f'"{name}":{json.dumps(fields, separators=(",", ":"))}')
    return "{" + ",".join(parts) + "}"


def changed(text: str, changes: list[tuple[int, int, str]]) -> str:
    for at, count, insert in changes:
        at %= len(text) + 1
        text = text[:at] + insert + text[at + count :]
    return text


def said_by(values: dict[str, Any]) -> tuple[Any, Columns]:
    metadata = values.pop("__metadata__", None)
    fields = list(values.values())
    ranges = [each["data_offsets"] for each in fields]
    specs = [TensorSpec(each["dtype"], tuple(each["shape"])) for each in fields]
    return metadata, Columns(list(values), specs, [start for start, _ in ranges], [end for _, end in ranges])


@example(None, [("a", "F32", [2], (0, 8))], [])
@example({"a": "v"}, [("a", "F32", [], (0, 4)), ("é", "F32", [0, 3], (4, 4))], [])
@example(None, [("a", "F32", [2], (0, 8)), ("a", "F32", [2], (8, 16))], [])
@example({}, [("__metadata__", "F32", [2], (0, 8))], [])
@given(METADATA, ENTRIES, CHANGES)
def test_columns_are_what_the_json_says(
    metadata: dict[str, str] | None, entries: list[Any], changes: list[tuple[int, int, str]]
) -> None:
    raw = changed(text_of(metadata, entries), changes).encode()
    found = read_columns(raw)
    event(f"read: {found is not None}, changed: {bool(changes)}")
    if found is not None:
        assert found == said_by(parse_object(raw, file="f", what="it"))
        assert all(type(number) is int for number in (*found[1].starts, *found[1].ends))
        assert len(set(map(id, found[1].specs))) == len(set(found[1].specs))
    elif not changes and entries and len({"__metadata__", *(each[0] for each in entries)}) > len(entries):
        raise AssertionError("a regular header was not read")


@pytest.mark.parametrize(
    "offsets",
    ["[0,8", "[0,8]]", "[00,8]", "[+0,8]", "[0_0,8]", "[0.0,8]", "[0,8,9]", "[]", "[٣,8]", "[-1,8]"],
)
def test_offsets_that_are_not_two_plain_numbers_are_refused(offsets: str) -> None:
    raw = f'{{"a":{{"dtype":"F32","shape":[2],"data_offsets":{offsets}}}}}'.encode()
    with pytest.raises(CheckpointError):
        parse_header(raw, 8, file="f")


@example(b'{"a": "b", "a": "b"}')
@example(b'{"a": [NaN]}')
@example(b'{"a": "\\u0041"}')
@example(b'["a"]')
@example(b'{"a": {"b": "c", "b": 1}}')
@given(
    st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.lists(st.text(max_size=2)))
    .map(json.dumps)
    .map(str.encode)
)
def test_regular_objects_are_read_as_strictly(raw: bytes) -> None:
    def outcome(read: Any) -> object:
        try:
            return read()
        except CheckpointError as error:
            return error.seen

    strict = outcome(lambda: parse_object(raw, file="f", what="it"))
    assert outcome(lambda: parse_regular(raw, strings_in, file="f", what="it")) == strict
