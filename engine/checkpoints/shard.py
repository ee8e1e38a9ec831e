"""Shards: a file's checked header and the source of its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.checkpoints.header import Header, read_header
from weightloom.engine.checkpoints.source import ByteSource, FileSource


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a checkpoint; `path` is None for one in memory."""

    path: Path | None
    header: Header
    source: ByteSource

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.source.name


def open_shards(paths: Iterable[Path]) -> tuple[Shard, ...]:
    """Open files and check their headers; on an error none stays open. Raises CheckpointError, StorageError."""
    with ExitStack() as stack:
        shards = tuple([_open(path, stack) for path in paths])
        stack.pop_all()
    return shards


def _open(path: Path, stack: ExitStack) -> Shard:
    source = FileSource(path)
    stack.callback(source.close)
    return Shard(path, read_header(source), source)
