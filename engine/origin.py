"""Where the bytes of a plan's sources are: in MLX arrays, or in the files of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from weightloom.engine.carrier import memory_of
from weightloom.engine.checkpoint import Checkpoint
from weightloom.engine.gather import Reader

if TYPE_CHECKING:
    import mlx.core as mx

BLOCK = 8 << 20

# An array that is not row-major is copied once for all tensors that are cut from it, if they are not far apart.
_REMEMBERED = 4


class Origin(Protocol):
    """Gives a reader of some of a plan's sources, by slot."""

    def reader(self, sources: tuple[str, ...], slots: Iterable[int]) -> Reader:
        """Give a reader for these slots of a group with these sources."""


class ParameterOrigin:
    """The sources are parameters."""

    def __init__(self, params: Mapping[str, mx.array]) -> None:
        self._memory = lru_cache(_REMEMBERED)(lambda name: memory_of(params[name]))

    def reader(self, sources: tuple[str, ...], slots: Iterable[int]) -> Reader:
        """Read from the arrays' memory; it is looked up once."""
        memory = {slot: self._memory(sources[slot]) for slot in slots}

        def read(slot: int, offset: int, buffer: memoryview) -> None:
            buffer[:] = memory[slot][offset : offset + len(buffer)]

        return read


@dataclass(frozen=True)
class CheckpointOrigin:
    """The sources are tensors of a checkpoint."""

    checkpoint: Checkpoint

    def reader(self, sources: tuple[str, ...], slots: Iterable[int]) -> Reader:
        """Read from the files."""

        def read(slot: int, offset: int, buffer: memoryview) -> None:
            self.checkpoint.read_into(sources[slot], offset, buffer)

        return read
