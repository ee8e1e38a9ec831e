"""Cases C64-C69: single files, byte by byte. MLX's own reader accepts several of the refused ones."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import contents, plan_of
from weightloom.engine import Checkpoint, CheckpointError


def tensor(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def write(folder: Path, header: str | dict[str, object], data: bytes = b"") -> Path:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def refusal(path: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.open(path)
    assert caught.value.file == str(path)
    return caught.value


@pytest.mark.case("C64")
def test_c64_a_name_that_is_listed_twice(tmp_path: Path) -> None:
    """C64: the error says that `a` is there twice; it is not the last one in silence."""
    first, second = (json.dumps(tensor("F32", [1], at, at + 4)) for at in (0, 4))
    error = refusal(write(tmp_path, f'{{"a": {first}, "a": {second}}}', bytes(8)))
    assert error.seen.count("'a'") + error.seen.count('"a"') and "twice" in error.seen


LYING = {
    "too few bytes": ({"k": tensor("F32", [1000, 1000], 0, 4)}, 4),
    "the same bytes": ({"k": tensor("F32", [2], 0, 8), "v": tensor("F32", [2], 0, 8)}, 8),
    "an overlap": ({"k": tensor("F32", [2], 0, 8), "v": tensor("F32", [2], 4, 12)}, 12),
    "a hole": ({"k": tensor("F32", [1], 0, 4), "v": tensor("F32", [1], 8, 12)}, 12),
}


@pytest.mark.case("C65")
@pytest.mark.parametrize("case", LYING)
def test_c65_offsets_that_lie_are_refused_by_name(tmp_path: Path, case: str) -> None:
    """C65: a shape beyond its bytes, shared bytes, an overlap, a hole: each refused, the tensor named."""
    header, length = LYING[case]
    error = refusal(write(tmp_path, dict(header), bytes(length)))
    assert error.tensor in ("k", "v") and error.tensor in error.seen


@pytest.mark.case("C66")
@pytest.mark.parametrize("metadata", ['{"format": "pt"}', "{}", "null"])
def test_c66_a_file_without_tensors_loads(tmp_path: Path, metadata: str) -> None:
    """C66: only metadata, `{}` metadata and null metadata load: zero tensors, and the file is saved back as it is."""
    write(tmp_path / "in", f'{{"__metadata__": {metadata}}}')
    plan = plan_of(tmp_path / "in")
    assert plan.load() == {}
    assert dict(plan.sources) == {}
    plan.save({}, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C66")
@pytest.mark.parametrize("metadata", ["{}", "null"])
def test_c66_metadata_that_is_empty_or_null_beside_a_tensor(tmp_path: Path, metadata: str) -> None:
    """C66: a tensor beside empty or null metadata loads, with no metadata."""
    entry = json.dumps(tensor("F32", [1], 0, 4))
    path = write(tmp_path, f'{{"__metadata__": {metadata}, "a": {entry}}}', struct.pack("<f", 2.5))
    plan = plan_of(path)
    assert plan.load()["a"].tolist() == [2.5]
    assert plan.checkpoint is not None and dict(plan.checkpoint.metadata) == {}


@pytest.mark.case("C66")
def test_c66_a_number_as_metadata_value_is_a_clear_error(tmp_path: Path) -> None:
    """C66: metadata must be text to text; the error names the key."""
    error = refusal(write(tmp_path, '{"__metadata__": {"steps": 5}}'))
    assert "steps" in str(error) and "5" in str(error)


@pytest.mark.case("C67")
def test_c67_bytes_after_the_last_tensor(tmp_path: Path) -> None:
    """C67: two bytes too many. Chosen: refused, on every path."""
    path = write(tmp_path, {"a": tensor("F32", [1], 0, 4)}, bytes(6))
    error = refusal(path)
    assert "2" in error.seen
    for opened in (lambda: Checkpoint.open(tmp_path), lambda: Checkpoint.from_files([path])):
        with pytest.raises(CheckpointError):
            opened()


@pytest.mark.case("C68")
def test_c68_fp4_keeps_its_logical_shape(tmp_path: Path) -> None:
    """C68: F4 `[2,8]` is 16 values in 8 bytes, saved again with its logical shape."""
    write(tmp_path / "in", {"a": tensor("F4", [2, 8], 0, 8)}, bytes(range(8)))
    plan = plan_of(tmp_path / "in")
    assert plan.params["a"].shape == (2, 8) and plan.params["a"].dtype == "F4"
    loaded = plan.load()
    assert np.array(loaded["a"]).tobytes() == bytes(range(8))
    plan.save(loaded, tmp_path / "out", max_shard_bytes=1 << 20)
    with Checkpoint.open(tmp_path / "out") as again:
        assert (again.tensors["a"].dtype, again.tensors["a"].shape) == ("F4", (2, 8))
    plan.save(loaded, tmp_path / "same")
    assert contents(tmp_path / "same") == contents(tmp_path / "in")


@pytest.mark.case("C68")
@pytest.mark.parametrize("shape", [[2, 7], [1, 7]])
def test_c68_fp4_with_an_odd_last_size_is_refused(tmp_path: Path, shape: list[int]) -> None:
    """C68: F4 `[2,7]` fills 7 whole bytes and is refused all the same: a row ends inside a byte; so is `[1,7]`."""
    error = refusal(write(tmp_path, {"a": tensor("F4", shape, 0, 7)}, bytes(7)))
    assert error.tensor == "a" and "F4" in str(error)


@pytest.mark.case("C69")
def test_c69_fp8_codes_come_back_and_keep_their_label(tmp_path: Path) -> None:
    """C69: E4M3 0x38, 0x40 are 1.0, 2.0 and E8M0 127, 128 are 1.0, 2.0 once decoded; saved, they are the same bytes."""
    header: dict[str, object] = {"w": tensor("F8_E4M3", [2], 0, 2), "s": tensor("F8_E8M0", [2], 2, 4)}
    write(tmp_path / "in", header, bytes([0x38, 0x40, 127, 128]))
    plan = plan_of(tmp_path / "in")
    loaded = plan.load()
    assert (plan.params["w"].dtype, plan.params["s"].dtype) == ("F8_E4M3", "F8_E8M0")
    assert mx.from_fp8(loaded["w"], dtype=mx.float32).tolist() == [1.0, 2.0]
    assert [2.0 ** (code - 127) for code in np.array(loaded["s"]).tolist()] == [1.0, 2.0]
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C69")
@pytest.mark.parametrize(("dtype", "size"), [("F8_E5M2", 2), ("F64", 16)])
def test_c69_a_dtype_that_mlx_lacks(tmp_path: Path, dtype: str, size: int) -> None:
    """C69: E5M2 and F64. Chosen: carried as bytes under their own label, never converted."""
    write(tmp_path / "in", {"w": tensor(dtype, [2], 0, size)}, bytes(range(size)))
    plan = plan_of(tmp_path / "in")
    loaded = plan.load()
    assert loaded["w"].dtype == mx.uint8 and np.array(loaded["w"]).tobytes() == bytes(range(size))
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C69")
def test_c69_an_unknown_dtype_and_offsets_that_run_backwards(tmp_path: Path) -> None:
    """C69: `F9_X` is named in the error; offsets [999, 2] are refused with any dtype, also one nobody knows."""
    assert "F9_X" in str(refusal(write(tmp_path, {"w": tensor("F9_X", [2], 0, 2)}, bytes(2))))
    assert "[999, 2]" in str(refusal(write(tmp_path, {"w": tensor("F9_X", [2], 999, 2)}, bytes(2))))
    assert refusal(write(tmp_path, {"w": tensor("U8", [2], 999, 2)}, bytes(2))).tensor == "w"
    assert refusal(write(tmp_path, {"w": tensor("F64", [2], 0, 2)}, bytes(2))).tensor == "w"
