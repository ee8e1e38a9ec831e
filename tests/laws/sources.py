"""Checkpoints whose sources note or refuse what is read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tests.laws.worlds import Tensor, Tensors
from weightloom.engine import Checkpoint
from weightloom.engine.checkpoints.source import ByteSource


class DataWasRead(AssertionError):
    """A byte of tensor data was asked for before it was due."""


@dataclass
class NotedSource:
    """Passes reads on and keeps a list of them, (offset, length)."""

    inner: ByteSource
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def size(self) -> int:
        return self.inner.size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        self.reads.append((offset, len(buffer)))
        self.inner.read_into(offset, buffer)

    def check_unchanged(self) -> None:
        self.inner.check_unchanged()

    def check_contents(self) -> None:
        self.inner.check_contents()

    def close(self) -> None:
        self.inner.close()


class SilentSource(NotedSource):
    """Refuses every read: the header has been read already."""

    def read_into(self, offset: int, buffer: memoryview) -> None:
        raise DataWasRead(f"{len(buffer)} bytes at {offset} of {self.name}")


def with_sources(
    checkpoint: Checkpoint, wrap: Callable[[ByteSource], NotedSource]
) -> tuple[Checkpoint, list[NotedSource]]:
    """The same checkpoint on wrapped sources, and those."""
    wrapped = {id(shard.source): wrap(shard.source) for shard in checkpoint.shards}
    shards = tuple(replace(shard, source=wrapped[id(shard.source)]) for shard in checkpoint.shards)
    places = {name: checkpoint.source_of(name) for name in checkpoint.tensors}
    moved = {name: (wrapped[id(source)], offset) for name, (source, offset) in places.items()}
    return replace(checkpoint, shards=shards, _places=moved), list(wrapped.values())


def in_memory(tensors: Tensors, folder: Path) -> Checkpoint:
    """One file in a folder, in the order of the mapping."""
    from tests.laws.disk import shard_bytes

    path = folder / "model.safetensors"
    path.write_bytes(shard_bytes(list(tensors), list(tensors), tensors, None, {}, 0))
    return Checkpoint.open(path)


def of_array(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], dtype: str) -> Tensor:
    return Tensor(dtype, array.shape, array.tobytes())


def as_tensors(arrays: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]], dtype: str) -> Tensors:
    return {name: of_array(array, dtype) for name, array in arrays.items()}
