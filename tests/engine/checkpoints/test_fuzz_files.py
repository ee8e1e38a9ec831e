"""Fuzz of headers and index files: 16,000 inputs, the same ones every time. Only WeightloomError may escape."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.fuzz_files import changed_text, changed_value, dump, headers, indexes
from tests.engine.raw_files import entry, file_bytes, write
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.checkpoints.header import Header, read_header
from weightloom.engine.checkpoints.index import Index, parse_index
from weightloom.engine.checkpoints.source import MemorySource
from weightloom.engine.errors import CheckpointError, WeightloomError

# Inputs made in one example: drawing one by one costs ten times the time of what is tested.
BATCH = 10
RANDOM = st.integers(0, 2**32 - 1).map(Random)


def fuzz(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def try_header(raw: bytes, length: int) -> Header | None:
    """Read a header; one that is refused names its file, one that is accepted is sound."""
    content = file_bytes(raw, bytes(length))
    try:
        header = read_header(MemorySource(content, name="fuzz"))
    except CheckpointError as error:
        assert error.file == "fuzz" and error.expected and len(str(error)) < 3000
        return None
    values = json.loads(raw)
    values.pop("__metadata__", None)
    assert [e.name for e in header.entries] == list(values)
    assert sum(e.end - e.start for e in header.entries) == length
    assert reference_accepts(content) or is_looser(header)
    return header


def reference_accepts(content: bytes) -> bool:
    try:
        safetensors.deserialize(content)
    except safetensors.SafetensorError:
        return False
    return True


def is_looser(header: Header) -> bool:
    """Where the reference refuses and this reader does not: empty tensors out of line, and 0 written as -0."""
    return any(e.start == e.end for e in header.entries) or b"-0" in header.raw


def try_index(raw: bytes, folder: Path) -> Index | None:
    try:
        index = parse_index(raw, folder / "model.safetensors.index.json")
    except CheckpointError as error:
        assert error.file and error.expected and len(str(error)) < 3000
        return None
    assert all(folder in path.parents and ".." not in path.parts for path in index.files)
    return index


@fuzz(300)
@given(headers())
def test_sound_headers_are_accepted(case: tuple[dict[str, object], int]) -> None:
    header, length = case
    assert try_header(dump(header), length) is not None


@fuzz(500)
@given(headers(), RANDOM)
def test_headers_with_changed_bytes(case: tuple[dict[str, object], int], random: Random) -> None:
    header, length = case
    for _ in range(BATCH):
        try_header(changed_text(random, dump(header)), length)


@fuzz(500)
@given(headers(), RANDOM)
def test_headers_with_changed_values(case: tuple[dict[str, object], int], random: Random) -> None:
    header, length = case
    for _ in range(BATCH):
        try_header(dump(changed_value(random, header)), length)


@fuzz(200)
@given(headers(), RANDOM)
def test_files_with_changed_bytes(case: tuple[dict[str, object], int], random: Random) -> None:
    """The length in front and the data may change too."""
    header, length = case
    for _ in range(BATCH):
        content = changed_text(random, file_bytes(header, bytes(length)))
        try:
            read_header(MemorySource(content))
        except CheckpointError:
            continue
        assert reference_accepts(content) or is_looser(read_header(MemorySource(content)))


@fuzz(150)
@given(indexes(), RANDOM)
def test_indexes_with_changed_bytes(index: dict[str, object], random: Random) -> None:
    for _ in range(BATCH):
        try_index(changed_text(random, dump(index)), Path("model"))


@fuzz(150)
@given(indexes(), RANDOM)
def test_indexes_with_changed_values(index: dict[str, object], random: Random) -> None:
    for _ in range(BATCH):
        try_index(dump(changed_value(random, index)), Path("model"))


@fuzz(80)
@given(indexes(), RANDOM)
def test_directories_with_a_changed_index(index: dict[str, object], random: Random) -> None:
    """Whole directories: a.safetensors has a and b, b.safetensors has c and d."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, names in ("a.safetensors", "ab"), ("b.safetensors", "cd"):
            write(folder / file, {n: entry("U8", [1], k, k + 1) for k, n in enumerate(names)}, names.encode())
        for _ in range(BATCH):
            (folder / "model.safetensors.index.json").write_bytes(dump(changed_value(random, index)))
            try_directory(folder)


def try_directory(folder: Path) -> None:
    try:
        checkpoint = Checkpoint.open(folder)
    except WeightloomError as error:
        assert error.file
        return
    with checkpoint:
        for tensor in checkpoint.tensors:
            buffer = bytearray(1)
            checkpoint.read_into(tensor, 0, memoryview(buffer))
            assert buffer == tensor.encode()
