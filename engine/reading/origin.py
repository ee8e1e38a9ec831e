"""Where the bytes of a group's sources are: in MLX arrays, or in the files of a checkpoint.

A group may take fillers beside its sources. On the way from a checkpoint they are zeros; on the way back they are
what the load left over, as the checkpoint has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Protocol

from weightloom.engine.carrier import memory_of
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.planning.groups import Group
from weightloom.engine.reading.gather import Reader

if TYPE_CHECKING:
    import mlx.core as mx

BLOCK = 8 << 20

# An array that is not row-major is copied once for all tensors that are cut from it, if they are not far apart.
_REMEMBERED = 4

Filler = Callable[[Group, int], memoryview]
"""Gives the bytes of the filler in a slot of a group."""


class Origin(Protocol):
    """Gives a reader of some of a group's slots."""

    def reader(self, group: Group, slots: Iterable[int]) -> Reader:
        """Give a reader for these slots of a group."""
        ...


def zeros(group: Group, slot: int) -> memoryview:
    """Give a filler of zeros."""
    return memoryview(bytes(group.program.in_specs[slot].nbytes))


class ParameterOrigin:
    """The sources are parameters."""

    def __init__(self, params: Mapping[str, mx.array], filler: Filler = zeros) -> None:
        self._memory = lru_cache(_REMEMBERED)(lambda name: memory_of(params[name]))
        self._filler = filler

    def reader(self, group: Group, slots: Iterable[int]) -> Reader:
        """Read from the arrays' memory; it is looked up once."""
        memory = {slot: self._of(group, slot) for slot in slots}

        def read(slot: int, offset: int, buffer: memoryview) -> None:
            buffer[:] = memory[slot][offset : offset + len(buffer)]

        return read

    def _of(self, group: Group, slot: int) -> memoryview:
        return self._memory(group.sources[slot]) if slot < len(group.sources) else self._filler(group, slot)


@dataclass(frozen=True)
class CheckpointOrigin:
    """The sources are tensors of a checkpoint; `filler` None fills with zeros."""

    checkpoint: Checkpoint
    filler: Filler | None = None

    def reader(self, group: Group, slots: Iterable[int]) -> Reader:
        """Read from the files, and from fillers, which are made once."""
        fill = None if self.filler is None else lru_cache(_REMEMBERED)(partial(self.filler, group))

        def read(slot: int, offset: int, buffer: memoryview) -> None:
            if slot < len(group.sources):
                self.checkpoint.read_into(group.sources[slot], offset, buffer)
            elif fill is not None:
                buffer[:] = fill(slot)[offset : offset + len(buffer)]
            else:
                buffer[:] = bytes(len(buffer))

        return read
