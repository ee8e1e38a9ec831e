import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gguf_files import Tensor, U, array, gguf_bytes, noise, text, write_gguf
from weightloom.engine import Checkpoint, CheckpointError, WeightloomError
from weightloom.engine.gguf import open_gguf, read_gguf

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.alignment": 32,
    "a.u8": U("B", 255),
    "a.i8": U("b", -128),
    "a.u16": U("H", 65535),
    "a.i16": U("h", -3),
    "a.i32": U("i", -1),
    "a.f32": 0.5,
    "a.bool": True,
    "a.u64": U("Q", 2**64 - 1),
    "a.i64": U("q", -(2**63)),
    "a.f64": U("d", 1e300),
    "a.texts": ["", "ä", "\n"],
    "a.numbers": [1, 2, 3],
    "a.flags": [True, False],
    "a.nested": [["x"], ["y", "z"]],
    "a.empty": [],
}
TENSORS = (
    array("norm.weight", [1.0, 2.0, 3.0]),
    noise("a.weight", "Q4_0", (2, 64)),
    noise("b.weight", "Q8_0", (1, 32)),
)
GOOD = gguf_bytes(METADATA, TENSORS)


def refused(path: Path, raw: bytes) -> CheckpointError:
    path.write_bytes(raw)
    with pytest.raises(CheckpointError) as caught:
        open_gguf(path)
    assert caught.value.file == str(path)
    return caught.value


def test_values_of_every_type(tmp_path: Path) -> None:
    found = dict(read_gguf(write_gguf(tmp_path / "m.gguf", METADATA, ())).metadata)
    plain = {key: value.value if isinstance(value, U) else value for key, value in METADATA.items()}
    plain |= {"a.texts": ("", "ä", "\n"), "a.numbers": (1, 2, 3), "a.flags": (True, False), "a.empty": ()}
    plain |= {"a.nested": (("x",), ("y", "z"))}
    assert found == plain
    assert [type(found[key]) for key in ("a.bool", "a.u8", "a.f32")] == [bool, int, float]


def test_shapes_are_turned_round_and_offsets_count_from_the_start(tmp_path: Path) -> None:
    model = read_gguf(write_gguf(tmp_path / "m.gguf", METADATA, TENSORS))
    assert [(t.name, t.type.name, t.shape, t.nbytes) for t in model.tensors.values()] == [
        ("norm.weight", "F32", (3,), 12),
        ("a.weight", "Q4_0", (2, 64), 72),
        ("b.weight", "Q8_0", (1, 32), 34),
    ]
    for tensor in TENSORS:
        at = model.tensors[tensor.name].offset
        assert GOOD[at : at + len(tensor.data)] == tensor.data


@pytest.mark.parametrize(("version", "alignment"), [(2, 32), (3, 64), (3, 8)])
def test_versions_and_alignments(tmp_path: Path, version: int, alignment: int) -> None:
    metadata = {"general.alignment": alignment}
    path = write_gguf(tmp_path / "m.gguf", metadata, TENSORS, version=version, alignment=alignment)
    with open_gguf(path) as checkpoint:
        raw = bytearray(12)
        checkpoint.read_into("norm.weight", 0, memoryview(raw))
    assert raw == TENSORS[0].data


def test_the_gguf_package_reads_and_writes_the_same(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = write_gguf(tmp_path / "m.gguf", {"general.architecture": "llama"}, TENSORS)
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    for name, tensor in read_gguf(path).tensors.items():
        other = theirs[name]
        assert (tensor.offset, tensor.nbytes, tensor.type.name) == (
            other.data_offset,
            other.n_bytes,
            other.tensor_type.name,
        )
        assert list(tensor.shape[::-1]) == [int(size) for size in other.shape]
    writer = gguf.GGUFWriter(tmp_path / "w.gguf", "llama")
    writer.add_context_length(77)
    writer.add_token_list(["a", "b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read_gguf(tmp_path / "w.gguf").metadata
    assert (found["llama.context_length"], found["tokenizer.ggml.tokens"]) == (77, ("a", "b"))


def test_the_type_table_is_that_of_the_gguf_package() -> None:
    gguf = pytest.importorskip("gguf")
    from weightloom.engine.gguf.types import TYPES

    sizes = {int(kind): (kind.name, *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {number: (kind.name, kind.block, kind.nbytes) for number, kind in TYPES.items()}.items() <= sizes.items()


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    for length in range(len(GOOD)):
        refused(tmp_path / "m.gguf", GOOD[:length])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (gguf_bytes({}, (), version=1), "version 1"),
        (gguf_bytes({}, (), version=9), "version 9"),
        (gguf_bytes({}, (), order=">"), "big-endian"),
        (b"\x80\x02pickle....", "pickle"),
        (gguf_bytes({"general.alignment": 24}, TENSORS), "alignment 24"),
        (gguf_bytes({"general.alignment": "x"}, TENSORS), "alignment 'x'"),
        (gguf_bytes({}, (TENSORS[0], TENSORS[0])), "two entries"),
        (gguf_bytes({}, (Tensor("a.weight", "Q4_0", (2, 33), b"\0" * 36),)), "rows of 33 Q4_0"),
        (gguf_bytes({}, (Tensor("a", "F32", (1,) * 9, b"\0" * 4),)), "9 dims"),
        (gguf_bytes({}, (Tensor("a", "F32", (2**63, 2**63, 2**63), b"\0" * 4),)), "2**62"),
        (
            gguf_bytes({"a": True}, ()).replace(
                b"\x01\0\0\0\0\0\0\0a\x07\0\0\0\x01", b"\x01\0\0\0\0\0\0\0a\x07\0\0\0\x02"
            ),
            "bool",
        ),
        (gguf_bytes({"a": [[[[["x"]]]]]}, ()), "deep"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + (text("k") + struct.pack("<II", 4, 1)) * 2, "twice"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 13), "unknown type 13"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 8, 2**60), "array of"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 12, 2**62), "wanted"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2) + b"\xff\xfe" + b"\0" * 32, "UTF-8"),
    ],
)
def test_what_is_refused(tmp_path: Path, raw: bytes, words: str) -> None:
    assert words in str(refused(tmp_path / "m.gguf", raw))


def test_an_unknown_type_names_tensor_and_type(tmp_path: Path) -> None:
    raw = gguf_bytes({}, (noise("a.weight", "Q4_0", (1, 32)),))
    entry = text("a.weight") + struct.pack("<IQQ", 2, 32, 1)
    for number, name in ((36, "36"), (15, "Q8_K")):
        error = refused(tmp_path / "m.gguf", raw.replace(entry + b"\x02", entry + bytes([number])))
        assert (error.tensor, error.field) == ("a.weight", "type")
        assert f"type {name}" in error.seen


def test_overlapping_tensors_are_refused(tmp_path: Path) -> None:
    raw = gguf_bytes({}, (array("a", [1.0]), array("b", [2.0])))
    entry = text("b") + struct.pack("<IQI", 1, 1, 0)
    assert "overlaps" in str(refused(tmp_path / "m.gguf", raw.replace(entry + b"\x20", entry + b"\x00")))


def read_all(checkpoint: Checkpoint) -> None:
    for name, spec in checkpoint.tensors.items():
        checkpoint.read_into(name, 0, memoryview(bytearray(spec.nbytes)))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_bytes_are_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(GOOD)
    for at, value in changes:
        raw[at] = value
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    try:
        with open_gguf(path) as checkpoint:
            read_all(checkpoint)
    except WeightloomError:
        pass


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.binary(max_size=200), keys=st.integers(0, 3), tensors=st.integers(0, 3))
def test_any_bytes_are_read_or_refused(tmp_path: Path, tail: bytes, keys: int, tensors: int) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + tail)
    try:
        with open_gguf(path) as checkpoint:
            read_all(checkpoint)
    except WeightloomError:
        pass
