from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.engine.raw_files import entry, f32, file_bytes, write, write_f32, write_index
from tests.engine.reads import data_of, value_of
from weightloom.engine.checkpoints.checkpoint import Checkpoint, Shadowed
from weightloom.engine.errors import CheckpointError, StorageError, UsageError, WeightloomError
from weightloom.engine.spec import TensorSpec

INDEX = "model.safetensors.index.json"


def refused(path: Path, match: str) -> WeightloomError:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.open(path)
    assert match in str(caught.value)
    return caught.value


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """Two shards with an index: a, b (1.0) and norm (2.0)."""
    write_f32(tmp_path / "model-00001-of-00002.safetensors", "ab", 1.0)
    header, data = f32("n", 2.0)
    write(tmp_path / "model-00002-of-00002.safetensors", {"norm": header["n"]}, data)
    write_index(
        tmp_path,
        {
            "norm": "model-00002-of-00002.safetensors",
            "b": "model-00001-of-00002.safetensors",
            "a": "model-00001-of-00002.safetensors",
        },
    )
    return tmp_path


# -- one file --


def test_a_file_written_by_safetensors(tmp_path: Path) -> None:
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7, np.int8)}
    path = tmp_path / "x.safetensors"
    save_file(arrays, path, {"format": "np"})
    with Checkpoint.open(path) as checkpoint:
        assert checkpoint.files == (path,)
        assert checkpoint.metadata == {"format": "np"}
        assert checkpoint.nbytes == 25
        assert {n: s.shape for n, s in checkpoint.tensors.items()} == {n: a.shape for n, a in arrays.items()}
        for name, array in arrays.items():
            spec = checkpoint.tensors[name]
            assert data_of(checkpoint, name) == array.tobytes()
            assert spec.file == path and spec.offset is not None
            assert path.read_bytes()[spec.offset : spec.offset + spec.nbytes] == array.tobytes()
            assert checkpoint.source_of(name) == (checkpoint.shards[0].source, spec.offset)
        assert (checkpoint.index_path, checkpoint.index_bytes, checkpoint.notes, checkpoint.stray) == (
            None,
            None,
            (),
            (),
        )


def test_a_path_may_be_a_text_and_the_order_is_the_files(tmp_path: Path) -> None:
    write_f32(tmp_path / "x.safetensors", "zay")
    assert list(Checkpoint.open(str(tmp_path / "x.safetensors")).tensors) == ["z", "a", "y"]


def test_a_part_of_a_tensor(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(write(tmp_path / "x", {"a": entry("U8", [6], 0, 6)}, b"abcdef"))
    buffer = bytearray(3)
    checkpoint.read_into("a", 2, memoryview(buffer))
    assert buffer == b"cde"
    for start in -1, 4:
        with pytest.raises(UsageError, match="within its 6 bytes"):
            checkpoint.read_into("a", start, memoryview(buffer))
    with pytest.raises(CheckpointError, match="no tensor 'c' in this checkpoint"):
        checkpoint.read_into("c", 0, memoryview(buffer))


def test_it_cannot_be_changed(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(write_f32(tmp_path / "x", "a"))
    with pytest.raises(AttributeError):
        checkpoint.shards = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        checkpoint.tensors["b"] = TensorSpec()  # type: ignore[index]
    assert repr(checkpoint) == f"<Checkpoint: 1 tensors, 4 bytes, in '{tmp_path / 'x'}'>"


@pytest.mark.case("C69")
def test_c69_raw_bytes_keep_their_label(tmp_path: Path) -> None:
    """What the codes mean is for the quantization to say; here the bytes and the labels come through."""
    header = {"e4m3": entry("F8_E4M3", [2], 0, 2), "e8m0": entry("F8_E8M0", [2], 2, 4), "d": entry("F64", [1], 4, 12)}
    checkpoint = Checkpoint.open(write(tmp_path / "x", header, bytes([0x38, 0x40, 127, 128]) + bytes(8)))
    assert [spec.dtype for spec in checkpoint.tensors.values()] == ["F8_E4M3", "F8_E8M0", "F64"]
    assert (data_of(checkpoint, "e4m3"), data_of(checkpoint, "e8m0")) == (b"\x38\x40", bytes([127, 128]))


# -- an index --


def test_the_index_of_a_directory(indexed: Path) -> None:
    for path in indexed, indexed / INDEX:
        checkpoint = Checkpoint.open(path)
        assert [file.name[:11] for file in checkpoint.files] == ["model-00001", "model-00002"]
        assert list(checkpoint.tensors) == ["a", "b", "norm"]
        assert [value_of(checkpoint, name) for name in checkpoint.tensors] == [1.0, 1.0, 2.0]
        assert checkpoint.index_path == indexed / INDEX
        assert checkpoint.index_bytes == (indexed / INDEX).read_bytes()
        assert (checkpoint.notes, checkpoint.stray, checkpoint.shadowed) == ((), (), ())


@pytest.mark.case("C70")
def test_c70_missing_shards_are_all_named(indexed: Path) -> None:
    """Before any shard is read: the one that is there is not even a safetensors file. No fallback to globbing."""
    write_index(indexed, {"a": "1.safetensors", "b": "2.safetensors", "c": "model-00001-of-00002.safetensors"})
    (indexed / "model-00001-of-00002.safetensors").write_bytes(b"not read")
    (indexed / "2.safetensors").symlink_to(indexed / "nowhere")
    error = refused(indexed, "incomplete download?")
    assert "1.safetensors" in error.seen and "2.safetensors" in error.seen and "00001" not in error.seen


@pytest.mark.case("C71")
def test_c71_a_stray_file_is_mentioned_and_not_read(indexed: Path) -> None:
    header, data = f32("n", 9.0)
    stray = write(indexed / "model.safetensors", {"norm": header["n"]}, data)
    (indexed / "._model.safetensors").write_bytes(b"left by another system")
    checkpoint = Checkpoint.open(indexed)
    assert value_of(checkpoint, "norm") == 2.0
    assert checkpoint.stray == (stray,)
    assert checkpoint.notes == (f"not read, since the index {INDEX} decides: 'model.safetensors'",)


@pytest.mark.case("C72")
def test_c72_the_index_chooses_between_two_shards(tmp_path: Path) -> None:
    base = write_f32(tmp_path / "base.safetensors", "ab", 1.0)
    overlay = write_f32(tmp_path / "overlay.safetensors", "a", 2.0)
    write_index(tmp_path, {"a": overlay.name, "b": base.name})
    checkpoint = Checkpoint.open(tmp_path)
    assert value_of(checkpoint, "a") == 2.0
    assert checkpoint.tensors["a"].file == overlay
    assert checkpoint.shadowed == (Shadowed("a", base, overlay),)
    assert "1 tensors of" in checkpoint.notes[0] and "'a'" in checkpoint.notes[0]
    assert checkpoint.nbytes == 8


@pytest.mark.case("C72")
def test_c72_without_an_index_the_same_name_twice_is_an_error(tmp_path: Path) -> None:
    base = write_f32(tmp_path / "base.safetensors", "ab")
    overlay = write_f32(tmp_path / "overlay.safetensors", "a")
    before = descriptors()
    for attempt in lambda: Checkpoint.open(tmp_path), lambda: Checkpoint.from_files([base, str(overlay)]):
        with pytest.raises(CheckpointError, match="tensor 'a' is in two files") as caught:
            attempt()
        assert str(base) in caught.value.seen and str(overlay) in caught.value.seen
        assert caught.value.tensor == "a"
    assert descriptors() == before


def test_a_tensor_that_the_index_leaves_out_is_used_and_noted(indexed: Path) -> None:
    write_index(indexed, {"a": "model-00001-of-00002.safetensors", "norm": "model-00002-of-00002.safetensors"})
    checkpoint = Checkpoint.open(indexed)
    assert value_of(checkpoint, "b") == 1.0
    assert checkpoint.notes == ("1 tensors are in the files and not in the index; they are used: 'b'",)


def test_a_tensor_in_two_shards_that_the_index_leaves_out_is_an_error(indexed: Path) -> None:
    write_f32(indexed / "model-00002-of-00002.safetensors", "bx")
    write_index(indexed, {"a": "model-00001-of-00002.safetensors", "x": "model-00002-of-00002.safetensors"})
    refused(indexed, "tensor 'b' is in two files")


def test_a_tensor_that_the_index_promises_and_its_file_lacks(indexed: Path) -> None:
    first = "model-00001-of-00002.safetensors"
    write_index(indexed, {"a": first, "b": first, "c": first, "d": first})
    error = refused(indexed, "tensors that the index names are not in their files: 'c', 'd'")
    assert (error.tensor, error.file) == ("c", str(indexed / INDEX))


def test_of_several_indexes_the_usual_name_counts(indexed: Path) -> None:
    write_index(indexed, {"x": "gone.safetensors"}, "other.safetensors.index.json")
    write_index(indexed, {"x": "gone.bin"}, "pytorch_model.bin.index.json")
    assert len(Checkpoint.open(indexed).tensors) == 3
    (indexed / INDEX).rename(indexed / "third.safetensors.index.json")
    refused(indexed, "several indexes")
    (indexed / "other.safetensors.index.json").unlink()
    checkpoint = Checkpoint.open(indexed)
    assert checkpoint.index_path == indexed / "third.safetensors.index.json"


def test_shards_in_a_hub_cache_are_links(indexed: Path, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    for number, path in enumerate([*indexed.glob("*.safetensors"), indexed / INDEX]):
        path.rename(blobs / str(number))
        (snapshot / path.name).symlink_to(Path("..", "blobs", str(number)))
    assert len(Checkpoint.open(snapshot).tensors) == 3


# -- directories --


def test_without_an_index_model_safetensors_counts(tmp_path: Path) -> None:
    write_f32(tmp_path / "model.safetensors", "a", 1.0)
    other = write_f32(tmp_path / "adapter.safetensors", "a", 5.0)
    checkpoint = Checkpoint.open(tmp_path)
    assert value_of(checkpoint, "a") == 1.0
    assert checkpoint.stray == (other,)
    assert checkpoint.notes == ("not read, since model.safetensors decides: 'adapter.safetensors'",)


def test_loose_files_are_joined_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, letters in ("b.safetensors", "c"), ("a.safetensors", "zy"), (".hidden.safetensors", "c"):
        write_f32(tmp_path / name, letters)
    checkpoint = Checkpoint.open(tmp_path)
    assert list(checkpoint.tensors) == ["z", "y", "c"]
    assert checkpoint.files == (tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert checkpoint.index_path is None


def test_metadata_is_joined_and_the_first_counts(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"__metadata__": {"format": "pt", "x": "1"}})
    write(tmp_path / "b.safetensors", {"__metadata__": {"format": "mlx", "y": "2"}})
    write(tmp_path / "c.safetensors", {})
    checkpoint = Checkpoint.open(tmp_path)
    assert checkpoint.metadata == {"format": "pt", "x": "1", "y": "2"}
    assert [shard.header.metadata for shard in checkpoint.shards][1:] == [{"format": "mlx", "y": "2"}, None]


def test_nothing_to_read(tmp_path: Path) -> None:
    refused(tmp_path, "it is empty")
    (tmp_path / "config.json").write_text("{}")
    refused(tmp_path, "it holds 'config.json'")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    error = refused(tmp_path, "it holds 'config.json', 'pytorch_model.bin'")
    assert "not read" in (error.hint or "")


@pytest.mark.parametrize("name", ["none", "none/model.safetensors", f"none/{INDEX}", "file/x", "nul\0"])
def test_a_path_that_is_not_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WeightloomError) as caught:
        Checkpoint.open(tmp_path / name)
    assert ("not a path" if "\0" in name else "no such file") in caught.value.seen
    assert os.listdir(tmp_path) == ["file"]


def test_what_the_system_refuses(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StorageError):
        Checkpoint.open(tmp_path / "loop")


def test_a_bad_shard_is_named_and_the_others_are_closed(tmp_path: Path) -> None:
    write_f32(tmp_path / "a.safetensors", "a")
    bad = tmp_path / "b.safetensors"
    bad.write_bytes(file_bytes({"b": entry("F32", [2], 0, 4)}, bytes(4)))
    before = descriptors()
    assert refused(tmp_path, "4 bytes of data").file == str(bad)
    assert descriptors() == before


# -- file lists --


def test_a_list_of_files_needs_no_index(indexed: Path) -> None:
    write_index(indexed, {"a": "gone.safetensors"})
    files = sorted(indexed.glob("*.safetensors"), reverse=True)
    checkpoint = Checkpoint.from_files(files)
    assert list(checkpoint.tensors) == ["norm", "a", "b"]
    assert checkpoint.files == tuple(files)
    with pytest.raises(CheckpointError, match="no files"):
        Checkpoint.from_files([])


# -- changes --


def test_changes_are_noticed_by_name(indexed: Path) -> None:
    with Checkpoint.open(indexed) as checkpoint:
        checkpoint.check_unchanged()
        second = checkpoint.files[1]
        second.unlink()
        with pytest.raises(CheckpointError, match="it is gone") as caught:
            checkpoint.check_unchanged()
        assert caught.value.file == str(second)
        assert value_of(checkpoint, "norm") == 2.0
    with pytest.raises(CheckpointError, match="closed"):
        value_of(checkpoint, "a")
    checkpoint.close()
    assert len(checkpoint.tensors) == 3


# -- specs, and what reading costs --


def test_specs_of_a_checkpoint_make_one_without_places(indexed: Path) -> None:
    checkpoint = Checkpoint.from_specs(Checkpoint.open(indexed).tensors)
    assert all(spec.file is None and spec.offset is None for spec in checkpoint.tensors.values())


def test_neither_mlx_nor_numpy_is_imported_to_read_headers(indexed: Path) -> None:
    code = (
        "import sys; from weightloom.engine.checkpoints.checkpoint import Checkpoint;"
        f"Checkpoint.open({str(indexed)!r}); print([m for m in ('mlx', 'mlx.core', 'numpy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_header_of_ninety_thousand_tensors(tmp_path: Path) -> None:
    header = {f"layers.{k}.weight": entry("U8", [1, 1], k, k + 1) for k in range(90_000)}
    path = write(tmp_path / "x.safetensors", json.dumps(header), bytes(90_000))
    assert len(Checkpoint.open(path).tensors) == 90_000
