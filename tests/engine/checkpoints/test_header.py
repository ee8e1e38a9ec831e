from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.engine.raw_files import entry, f32, file_bytes
from weightloom.engine.checkpoints.header import MAX_HEADER_BYTES, Header, read_header
from weightloom.engine.checkpoints.source import MemorySource
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import CheckpointError


def read(header: object, data: bytes = b"") -> Header:
    return read_header(MemorySource(file_bytes(header, data), name="a.safetensors"))


def refused(header: object, data: bytes = b"") -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        read(header, data)
    assert caught.value.file == "a.safetensors"
    assert caught.value.expected and caught.value.hint
    return caught.value


def reference_accepts(header: object, data: bytes = b"") -> bool:
    try:
        safetensors.deserialize(file_bytes(header, data))
    except safetensors.SafetensorError:
        return False
    return True


# -- what is read --


def test_reads_what_safetensors_writes() -> None:
    arrays = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array(7, np.int8),
        "none": np.zeros((0, 4), np.float16),
    }
    raw = save(arrays, {"format": "np"})
    header = read_header(MemorySource(raw))
    assert dict(header.metadata or {}) == {"format": "np"}
    assert [e.name for e in header.entries] == [
        k for k in json.loads(raw[8 : header.data_start]) if k != "__metadata__"
    ]
    for e in header.entries:
        assert e.shape == arrays[e.name].shape
        start, end = header.data_start + e.start, header.data_start + e.end
        assert raw[start:end] == arrays[e.name].tobytes()


def test_keeps_the_text_verbatim() -> None:
    text = b'{ "a" : {"shape":[1],"dtype":"U8","data_offsets":[0,1]} }\n  '
    header = read(text, b"x")
    assert header.raw == text
    assert header.data_start == 8 + len(text)
    assert header.metadata is None


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "ü.😀", "__metadata", " ", "x" * 5000])
def test_any_unicode_name_is_accepted(name: str) -> None:
    assert read({name: entry("U8", [1], 0, 1)}, b"x").entries[0].name == name


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_dtype_has_its_length(dtype: str) -> None:
    length = 8 * DTYPES[dtype].bits // 8
    assert read({"a": entry(dtype, [8], 0, length)}, bytes(length)).entries[0].dtype == dtype
    assert refused({"a": entry(dtype, [8], 0, length + 1)}, bytes(length + 1)).tensor == "a"


def test_empty_tensors_may_lie_anywhere() -> None:
    """Looser than safetensors 0.8, which wants them in line with the others."""
    header = {"a": entry("F32", [1], 0, 4), "e": entry("F32", [0, 9], 2, 2)}
    assert read(header, bytes(4)).entries[1].shape == (0, 9)
    assert not reference_accepts(header, bytes(4))


# -- C64 to C69 --


@pytest.mark.case("C64")
def test_c64_a_name_listed_twice_is_refused() -> None:
    error = refused(
        '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        bytes(8),
    )
    assert "lists the name 'a' twice" in str(error)


@pytest.mark.case("C64")
@pytest.mark.parametrize(
    "text",
    [
        '{"__metadata__":{"a":"1","a":"2"}}',
        '{"__metadata__":{},"__metadata__":{}}',
        '{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
    ],
)
def test_c64_names_listed_twice_anywhere_are_refused(text: str) -> None:
    assert "twice" in str(refused(text))


@pytest.mark.case("C65")
def test_c65_a_length_that_lies() -> None:
    error = refused({"big": entry("F32", [1000, 1000], 0, 4)}, bytes(4))
    assert (error.tensor, error.field) == ("big", "data_offsets")
    assert "4 bytes of data" in str(error) and "4000000 bytes" in str(error)


@pytest.mark.case("C65")
@pytest.mark.parametrize("second", [(0, 8), (4, 12)])
def test_c65_overlapping_ranges(second: tuple[int, int]) -> None:
    error = refused({"k": entry("F32", [2], 0, 8), "v": entry("F32", [2], *second)}, bytes(second[1]))
    assert "overlap" in error.seen and "'k'" in error.seen and "'v'" in error.seen


@pytest.mark.case("C65")
def test_c65_a_hole() -> None:
    error = refused({"k": entry("F32", [1], 0, 4), "v": entry("F32", [1], 8, 12)}, bytes(12))
    assert error.seen == "4 bytes between tensors 'k' and 'v' belong to no tensor"


def test_bytes_before_the_first_tensor() -> None:
    error = refused({"k": entry("F32", [1], 4, 8)}, bytes(8))
    assert error.seen == "4 bytes before the first tensor 'k' belong to no tensor"


@pytest.mark.case("C66")
@pytest.mark.parametrize("text", ['{"__metadata__":{"a":"b"}}', '{"__metadata__":{}}', '{"__metadata__":null}'])
def test_c66_metadata_alone_is_a_checkpoint_without_tensors(text: str) -> None:
    header = read(text)
    assert header.entries == ()
    assert header.metadata == json.loads(text)["__metadata__"]


@pytest.mark.case("C66")
@pytest.mark.parametrize("value", [1, None, True, {}, [], "text", ["a"]])
def test_c66_metadata_holds_texts_only(value: object) -> None:
    metadata = value if isinstance(value, str | list) else {"key": value}
    error = refused({"__metadata__": metadata})
    assert error.field == "__metadata__"


@pytest.mark.case("C67")
def test_c67_bytes_after_the_last_tensor() -> None:
    header, data = f32("a")
    assert refused(header, data + b"xx").seen == "2 bytes after the last tensor 'a' belong to no tensor"
    assert refused({}, b"x").seen == "1 bytes in a file without tensors belong to no tensor"


@pytest.mark.case("C68")
def test_c68_f4_rows_fill_bytes() -> None:
    assert read({"a": entry("F4", [2, 8], 0, 8)}, bytes(8)).entries[0].shape == (2, 8)
    for shape, length in ([2, 7], 7), ([1, 7], 3), ([1, 7], 4), ([], 0), ([], 1), ([0, 3], 0):
        assert refused({"a": entry("F4", shape, 0, length)}, bytes(length)).field == "shape"


@pytest.mark.case("C68")
@pytest.mark.parametrize("dtype", ["F6_E2M3", "F6_E3M2"])
def test_c68_f6_rows_fill_bytes(dtype: str) -> None:
    assert read({"a": entry(dtype, [2, 4], 0, 6)}, bytes(6)).entries[0].shape == (2, 4)
    assert refused({"a": entry(dtype, [4, 2], 0, 6)}, bytes(6)).field == "shape"


@pytest.mark.case("C69")
def test_c69_an_unknown_dtype_lists_the_known() -> None:
    error = refused({"a": entry("F9_X", [2], 0, 2)}, bytes(2))
    assert error.field == "dtype" and "'F9_X'" in error.seen and "F8_E4M3" in str(error)


@pytest.mark.case("C69")
@pytest.mark.parametrize("dtype", ["F9_X", "F8_E5M2", "F64"])
def test_c69_offsets_are_checked_whatever_the_dtype(dtype: str) -> None:
    error = refused({"a": entry(dtype, [2], 999, 2)}, bytes(2))
    assert error.field == "data_offsets" and "[999, 2]" in error.seen


# -- other malformed headers --


@pytest.mark.parametrize("content", [b"", b"\x02", b"\0" * 7])
def test_a_file_too_short_for_a_length(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="too few for a header"):
        read_header(MemorySource(content))


@pytest.mark.parametrize("length", [0, 3, MAX_HEADER_BYTES + 1, 2**63, 2**64 - 1])
def test_a_header_length_that_cannot_be(length: int) -> None:
    with pytest.raises(CheckpointError, match=f"a header length of {length} bytes"):
        read_header(MemorySource(length.to_bytes(8, "little") + b"{}"))


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (b"GGUF\3\0\0\0" * 4, "GGUF"),
        (b"PK\3\4" * 8, "zip"),
        (b"\x80\2}q" * 8, "pickle"),
        (b"<!DOCTYPE html><html></html>", "web page"),
    ],
)
def test_a_file_of_another_kind_is_named(content: bytes, hint: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        read_header(MemorySource(content))
    assert hint in (caught.value.hint or "")


NESTED = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (b"\xff{}", "not UTF-8"),
        (b'{"\xed\xa0\x80":1}', "not UTF-8"),
        (b"{", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"{}\0", "not JSON"),
        (b"   ", "not JSON"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":[-Infinity]}', "-Infinity"),
        (b"[" * 100_000, "nested too deeply"),
        (NESTED, "nested too deeply"),
        (b'{"a":' + b"9" * 5000 + b"}", "integer of thousands of digits"),
        (b'{"a\\ud800":1}', "half a surrogate pair"),
        (b'{"a":"\\uDC00"}', "half a surrogate pair"),
    ],
    ids=range(15),
)
def test_text_that_is_not_a_sound_json_object(raw: bytes, seen: str) -> None:
    assert seen in refused(raw).seen


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert read(b'{"\\ud83d\\ude00":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}').entries[0].name == "😀"


BIG = 10**4000


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (None, "fields"),
        ([], "fields"),
        (["F32", [1], [0, 4]], "fields"),
        ({}, "fields"),
        ({"dtype": "F32", "shape": [1]}, "fields"),
        ({**entry("F32", [1], 0, 4), "more": 1}, "fields"),
        ({"dtype": "F32", "shape": [1], "offsets": [0, 4]}, "fields"),
        ({"dtype": 7, "shape": [1], "data_offsets": [0, 4]}, "dtype"),
        ({"dtype": None, "shape": [1], "data_offsets": [0, 4]}, "dtype"),
        ({"dtype": "f32", "shape": [1], "data_offsets": [0, 4]}, "dtype"),
        ({"dtype": "F32", "shape": 1, "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": {"1": 1}, "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [None], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [[1]], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F4", "shape": [-2, "a"], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [2**33, 2**31], "data_offsets": [0, 0]}, "shape"),
        ({"dtype": "F32", "shape": [2**63, 0], "data_offsets": [0, 0]}, "shape"),
        ({"dtype": "F32", "shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}, "shape"),
        ({"dtype": "F32", "shape": [BIG], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [2**62] * 10_000, "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [1], "data_offsets": None}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": 4}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [4]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [0.0, 4]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [False, 4]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": ["0", "4"]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}, "data_offsets"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [0, BIG]}, "data_offsets"),
    ],
)
def test_each_field_is_checked(fields: object, field: str) -> None:
    error = refused({"model.a": fields}, bytes(4))
    assert (error.tensor, error.field) == ("model.a", field)
    assert len(str(error)) < 1000


def test_messages_stay_short_whatever_the_name() -> None:
    assert len(str(refused({"n" * 100_000: 1}))) < 1000


# -- compared with the reference --

FIELDS = st.sampled_from(["U8", "F16", "F32", "I64", "BOOL", "F9"])
SIZES = st.lists(st.integers(0, 3), max_size=3)


@given(
    st.lists(st.tuples(FIELDS, SIZES, st.integers(0, 12), st.integers(0, 12)), max_size=3),
    st.integers(0, 16),
)
def test_what_the_reference_refuses_is_refused(tensors: list[tuple[str, list[int], int, int]], length: int) -> None:
    """Empty tensors aside, where safetensors 0.8 refuses an offset that covers nothing."""
    header = {f"t{k}": entry(*fields) for k, fields in enumerate(tensors) if fields[2] != fields[3]}
    try:
        read(header, bytes(length))
        accepted = True
    except CheckpointError:
        accepted = False
    assert accepted == reference_accepts(header, bytes(length))


@pytest.mark.parametrize(
    "header",
    [
        {"a": {**entry("F32", [1], 0, 4), "more": 1}},
        {"a": ["F32", [1], [0, 4]]},
        {"a": entry("F32", [1], 0, 4), "e": entry("F32", [0, 2**62, 2], 0, 0)},
        '{"__metadata__":{"a":"1","a":"2"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    ],
)
def test_stricter_than_the_reference(header: object) -> None:
    assert reference_accepts(header, bytes(4))
    refused(header, bytes(4))
