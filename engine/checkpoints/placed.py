"""Where tensors are, put together when one is asked for: a checkpoint has a hundred thousand of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.spec import TensorSpec


@dataclass(frozen=True, eq=False, slots=True)
class Places(Mapping[str, tuple[ByteSource, int]]):
    """The source of each tensor's bytes and the offset there of the first one."""

    sources: Mapping[str, ByteSource]
    offsets: Mapping[str, int]

    def __getitem__(self, name: str) -> tuple[ByteSource, int]:
        return self.sources[name], self.offsets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, eq=False, slots=True)
class Placed(Mapping[str, TensorSpec]):
    """The specs of a checkpoint's tensors, with their places on disk.

    `logical` are the specs without a place, of which there are few that differ, and `files` the path of each source,
    by its identity; a source that is no file has none.
    """

    logical: Mapping[str, TensorSpec]
    places: Mapping[str, tuple[ByteSource, int]]
    files: Mapping[int, Path]

    def __getitem__(self, name: str) -> TensorSpec:
        spec = self.logical[name]
        source, offset = self.places[name]
        file = self.files.get(id(source))
        return spec if file is None else TensorSpec(spec.dtype, spec.shape, file, offset)

    def __contains__(self, name: object) -> bool:
        return name in self.logical

    def __iter__(self) -> Iterator[str]:
        return iter(self.logical)

    def __len__(self) -> int:
        return len(self.logical)

    def __repr__(self) -> str:
        return repr(dict(self))
