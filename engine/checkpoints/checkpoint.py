"""Checkpoint: the headers of all its files, and where each tensor's bytes are. Never tensor data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING

from weightloom.engine.array_bytes import spec_and_bytes
from weightloom.engine.checkpoints.contents import Shadowed as Shadowed
from weightloom.engine.checkpoints.contents import collect, merged_metadata
from weightloom.engine.checkpoints.discovery import Found, find_files
from weightloom.engine.checkpoints.header import Header, new_header
from weightloom.engine.checkpoints.index import Index
from weightloom.engine.checkpoints.shard import Shard as Shard
from weightloom.engine.checkpoints.shard import open_shards
from weightloom.engine.checkpoints.source import AbsentSource, ByteSource, MemorySource
from weightloom.engine.disk.recovery import recover
from weightloom.engine.errors import CheckpointError, UsageError
from weightloom.engine.show import listed, shown
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    from weightloom.engine.array_bytes import Array


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint:
    """What is on disk. Made by `open`, `from_files`, `from_arrays` or `from_specs`; close it, or use `with`.

    `tensors` are in the order of the files and of their headers; a spec's `offset` counts from the start of its
    file. `logical` are the same specs without a place on disk, one object for all tensors of one dtype and shape.
    `metadata` joins that of the shards, the first one counts. `shadowed` are tensors whose file the index
    passes over, `stray` weight files beside the chosen ones that are not read, `notes` says so in words.
    `index_bytes` is the index verbatim. Equal only to itself.
    """

    shards: tuple[Shard, ...]
    tensors: Mapping[str, TensorSpec]
    logical: Mapping[str, TensorSpec]
    metadata: Mapping[str, str]
    shadowed: tuple[Shadowed, ...] = ()
    stray: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    index_path: Path | None = None
    index_bytes: bytes | None = None
    _places: Mapping[str, tuple[ByteSource, int]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | Path) -> Checkpoint:
        """Open a file, an index file, or a directory (its index; else `model.safetensors`; else all loose files).

        A directory whose replacement by a save was cut off is put back first. Only headers are read.

        Raises CheckpointError for files that are missing, malformed or do not belong together, StorageError
        where the system refuses, UsageError for a path that cannot be one.
        """
        path = Path(path)
        if not os.path.exists(path) and not recover(path):
            recover(path.parent)
        found = find_files(path)
        return cls._of(open_shards(found.files), found)

    @classmethod
    def from_files(cls, paths: Iterable[str | Path]) -> Checkpoint:
        """Open files that together are a checkpoint without an index.

        Raises as `open` does; a tensor in two files is an error that names both, and so is an empty list.
        """
        files = tuple(map(Path, paths))
        if not files:
            raise CheckpointError("no files were given", expected="at least one file")
        return cls._of(open_shards(files), Found(files))

    @classmethod
    def from_shards(cls, shards: Iterable[Shard], index: Index | None = None) -> Checkpoint:
        """Take shards that are open already, and the index that names them; raises as `open` does."""
        return cls._of(tuple(shards), Found((), index))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> Checkpoint:
        """Take MLX or NumPy arrays, row-major; their memory is used as it is where it is contiguous.

        Raises CheckpointError, naming the tensor, for a dtype that safetensors lacks or a name that cannot be one.
        """
        parts = {name: spec_and_bytes(name, array) for name, array in arrays.items()}
        header = new_header(((name, spec) for name, (spec, _) in parts.items()), metadata)
        pieces = [memory for _, memory in parts.values()]
        return cls._in_memory(header, MemorySource(len(header.raw).to_bytes(8, "little"), header.raw, *pieces))

    @classmethod
    def from_specs(cls, specs: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None = None) -> Checkpoint:
        """Take names, dtypes and shapes only; reading a tensor raises CheckpointError, as do unsound specs."""
        header = new_header(specs.items(), metadata)
        return cls._in_memory(header, AbsentSource(header.data_start + max(header.columns.ends, default=0)))

    @classmethod
    def _in_memory(cls, header: Header, source: ByteSource) -> Checkpoint:
        return cls._of((Shard(None, header, source),), Found(()))

    @classmethod
    def _of(cls, shards: tuple[Shard, ...], found: Found) -> Checkpoint:
        try:
            contents = collect(shards, found.index)
        except BaseException:
            _close(shards)
            raise
        return cls(
            shards,
            contents.tensors,
            MappingProxyType(contents.logical),
            MappingProxyType(merged_metadata(shards)),
            contents.shadowed,
            found.stray,
            (*contents.notes, *_stray_notes(found)),
            found.index.path if found.index else None,
            found.index.raw if found.index else None,
            contents.places,
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read, in order."""
        return tuple(shard.path for shard in self.shards if shard.path is not None)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors' data."""
        return sum(spec.nbytes for spec in self.logical.values())

    @property
    def has_data(self) -> bool:
        """Say whether there are bytes behind the names: not of one that `from_specs` made."""
        return not any(isinstance(shard.source, AbsentSource) for shard in self.shards)

    def source_of(self, name: str) -> tuple[ByteSource, int]:
        """Give the source of a tensor's bytes and the offset there of its first one. Raises CheckpointError."""
        place = self._places.get(name)
        if place is None:
            raise CheckpointError(
                f"no tensor {shown(name)} in this checkpoint",
                expected=f"one of its {len(self.tensors)} names",
                hint=f"they begin with {listed(self.tensors, 3)}",
                file=self.index_path or (self.shards[0].name if self.shards else None),
                tensor=name,
            )
        return place

    def read_into(self, name: str, start: int, buffer: memoryview) -> None:
        """Fill the buffer (contiguous, writable) with a tensor's bytes from its byte `start` on.

        Raises CheckpointError for a name that is not there, no data, or a file cut short; UsageError beyond the
        tensor's end; StorageError where the system refuses.
        """
        source, offset = self.source_of(name)
        length = self.logical[name].nbytes
        if start < 0 or start + buffer.nbytes > length:
            raise UsageError(
                f"bytes {start} to {start + buffer.nbytes} of tensor {shown(name)}",
                expected=f"a range within its {length} bytes",
                file=source.name,
                tensor=name,
            )
        source.read_into(offset + start, buffer)

    def check_unchanged(self) -> None:
        """Raise CheckpointError, naming file and change, unless every file is as it was when it was opened."""
        for shard in self.shards:
            shard.source.check_unchanged()

    def check_contents(self, names: Iterable[str]) -> None:
        """Raise CheckpointError, naming the file, if one that holds these tensors was written to since it was opened.

        A file that was replaced or removed is still the one that was opened.
        """
        sources = {id(source): source for source, _ in map(self.source_of, names)}
        for source in sources.values():
            source.check_contents()

    def close(self) -> None:
        """Close the files; names, dtypes and shapes stay. Wait for reads under way before. Twice is fine."""
        _close(self.shards)

    def __repr__(self) -> str:
        places = listed((shard.name for shard in self.shards), 3)
        return f"<Checkpoint: {len(self.tensors)} tensors, {self.nbytes} bytes, in {places}>"

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(shards: Iterable[Shard]) -> None:
    for shard in shards:
        shard.source.close()


def _stray_notes(found: Found) -> tuple[str, ...]:
    if not found.stray:
        return ()
    why = f"the index {found.index.path.name} decides" if found.index else f"{found.files[0].name} decides"
    return (f"not read, since {why}: {listed(path.name for path in found.stray)}",)
