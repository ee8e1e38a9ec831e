"""The file of kept tensors: what it records, and the source that it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.fixtures import Arrays, contents, write, write_index
from weightloom.engine import Checkpoint, CheckpointError, TensorSpec, UsageError, build_plan
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.checkpoints.kept_names import CONFIG, HEADER, RECORD, kept_names
from weightloom.engine.checkpoints.kept_note import KeptNote, read_note, specs_digest
from weightloom.engine.checkpoints.recorded import RecordedSource, recorded_checkpoint, recorded_config
from weightloom.engine.checkpoints.source import MemorySource
from weightloom.engine.saving.kept_file import data_lengths, kept_shard
from weightloom.engine.saving.save import convert, copy_checkpoint

A: Arrays = {"a": np.arange(6, dtype=np.float32), "b": np.ones((2, 3), np.float16)}
B: Arrays = {"c": np.arange(4, dtype=np.int32), "a": np.full(6, 7, np.float32)}


def note(source: Checkpoint, **changes: object) -> KeptNote:
    values = {"layout": "mlx", "source_layout": "hf", "weights": "w", "config": "", "model_type": ""}
    return KeptNote(**{**values, "lengths": data_lengths(source), **changes})  # type: ignore[arg-type]


def two_files(folder: Path) -> Checkpoint:
    """Two files of which the index passes over one tensor of the second."""
    write(folder / "model-00001-of-00002.safetensors", A, {"format": "pt", "by": "me"})
    write(folder / "model-00002-of-00002.safetensors", B)
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"}
    write_index(folder, {**names, "c": "model-00002-of-00002.safetensors"})
    return Checkpoint.open(folder)


def written(source: Checkpoint, names: set[str], folder: Path, config: bytes | None = b"{ }") -> Path:
    """Write nothing of a source but its kept file."""
    shard = kept_shard(source, names, config, note(source))
    plan = build_plan(source, ())
    convert(plan, folder, beside=(shard,))
    return folder / KEPT_NAME


def test_a_source_of_two_files_comes_back_with_what_its_index_passes_over(tmp_path: Path) -> None:
    source = two_files(tmp_path / "source")
    place = written(source, set(source.tensors), tmp_path / "kept")
    kept = Checkpoint.from_files([place])
    assert kept_names(kept.tensors) == ["a", "b", "c"]
    found = recorded_checkpoint(kept, read_note(kept.metadata, "kept"), tmp_path / "anywhere")
    assert dict(found.metadata) == dict(source.metadata)
    assert [shadow.name for shadow in found.shadowed] == ["a"]
    copy_checkpoint(found, tmp_path / "back")
    assert contents(tmp_path / "back") == contents(tmp_path / "source")
    assert recorded_config(kept) == b"{ }"


def test_what_was_not_kept_has_a_name_and_no_bytes(tmp_path: Path) -> None:
    source = two_files(tmp_path / "source")
    kept = Checkpoint.from_files([written(source, {"b"}, tmp_path / "kept", None)])
    found = recorded_checkpoint(kept, read_note(kept.metadata, "kept"), tmp_path)
    assert {name: spec.logical() for name, spec in found.tensors.items()} == dict(source.logical)
    buffer = bytearray(12)
    found.read_into("b", 0, memoryview(buffer))
    assert bytes(buffer) == A["b"].tobytes()
    with pytest.raises(CheckpointError, match="was not kept"):
        found.read_into("c", 0, memoryview(bytearray(4)))
    assert recorded_config(kept) is None


def test_a_tensor_with_the_name_of_a_record_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", {CONFIG: np.ones(2, np.uint8)})
    with Checkpoint.open(tmp_path) as source, pytest.raises(UsageError, match=RECORD):
        kept_shard(source, (), None, note(source))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "pt"},
        {"schema": "2"},
        {"weights": None},
        {"lengths": "1,x"},
        {"lengths": "9" * 25},
    ],
    ids=str,
)
def test_a_note_that_is_not_one_is_refused_by_name(change: Mapping[str, str | None]) -> None:
    metadata = note(Checkpoint.from_arrays({"a": np.ones(1, np.float32)})).metadata()
    found = {name: text for name, text in {**metadata, **change}.items() if text is not None}
    with pytest.raises(CheckpointError, match=next(iter(change))):
        read_note(found, "file")


@pytest.mark.parametrize("lengths", ["", "1", "24,40,1"])
def test_lengths_that_do_not_fit_the_headers_are_refused(tmp_path: Path, lengths: str) -> None:
    source = two_files(tmp_path / "source")
    kept = Checkpoint.from_files([written(source, set(), tmp_path / "kept")])
    counts = tuple(int(text) for text in lengths.split(",") if text)
    with pytest.raises(CheckpointError):
        recorded_checkpoint(kept, note(source, lengths=counts), tmp_path)


def test_a_header_of_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    raw = np.frombuffer(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', np.uint8)
    kept = Checkpoint.from_arrays({f"{HEADER}../../model.safetensors": raw})
    with pytest.raises(CheckpointError, match="the files"):
        recorded_checkpoint(kept, note(kept, lengths=(4,)), tmp_path)


def test_two_records_of_one_file_are_refused(tmp_path: Path) -> None:
    raw = np.frombuffer(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', np.uint8)
    kept = Checkpoint.from_arrays({f"{HEADER}model.safetensors": raw, "a": np.ones(2, np.float32)})
    with pytest.raises(CheckpointError, match="8 bytes"):
        recorded_checkpoint(kept, note(kept, lengths=(4,)), tmp_path)


@given(st.binary(min_size=1, max_size=40), st.data())
def test_ranges_are_read_across_their_borders(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted({0, len(data), *draw.draw(st.lists(st.integers(0, len(data)), max_size=5))})
    pieces = [(start, end, MemorySource(data[start:end]), 0) for start, end in pairwise(cuts)]
    source = RecordedSource("file", len(data), pieces)
    start = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(start, len(data)))
    buffer = bytearray(end - start)
    source.read_into(start, memoryview(buffer))
    assert bytes(buffer) == data[start:end]
    with pytest.raises(CheckpointError):
        source.read_into(len(data), memoryview(bytearray(1)))


@given(st.dictionaries(st.text(min_size=1), st.tuples(st.sampled_from(["F32", "BF16"]), st.integers(0, 9))))
def test_the_digest_does_not_depend_on_the_order(named: dict[str, tuple[str, int]]) -> None:
    specs = {name: TensorSpec(dtype, (size,)) for name, (dtype, size) in named.items()}
    assert specs_digest(specs) == specs_digest(dict(reversed(specs.items())))
    for name in specs:
        assert specs_digest(specs) != specs_digest({**specs, name: TensorSpec("F16", specs[name].shape)})
