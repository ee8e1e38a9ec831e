"""Where the bytes of a plan's sources are: in MLX arrays, or in the files of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from weightloom.engine.carrier import carried, memory_of
from weightloom.engine.checkpoint import Checkpoint
from weightloom.engine.gather import Reader, gather
from weightloom.engine.groups import Group
from weightloom.engine.program import Program
from weightloom.engine.values import finish
from weightloom.engine.view import View
from weightloom.engine.virtual_file import load_arrays

if TYPE_CHECKING:
    import mlx.core as mx

BLOCK = 8 << 20


class Origin(Protocol):
    """Gives a reader of some of a plan's sources, by slot."""

    def reader(self, sources: tuple[str, ...], slots: Iterable[int]) -> Reader:
        """Give a reader for these slots of a group with these sources."""


@dataclass(frozen=True)
class ParameterOrigin:
    """The sources are parameters."""

    params: Mapping[str, mx.array]

    def reader(self, sources: tuple[str, ...], slots: Iterable[int]) -> Reader:
        """Read from the arrays' memory; it is looked up once."""
        memory = {slot: memory_of(self.params[sources[slot]]) for slot in slots}

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


def pieces(group: Group, number: int, origin: Origin) -> Iterator[memoryview]:
    """Give the bytes of a group's result, in order, in blocks of some MiB."""
    if group.program.is_structural:
        view = group.program.views()[number]
        yield from _gathered(view, origin.reader(group.sources, view.slots))
    else:
        yield memory_of(_computed(group, origin)[number])


def _gathered(view: View, read: Reader) -> Iterator[memoryview]:
    rows = view.shape[0] if view.shape else 1
    step = max(1, BLOCK * rows // max(view.nbytes, 1))
    for start in range(0, rows, step):
        part = view.cut(0, start, min(start + step, rows)) if view.shape else view
        out = memoryview(bytearray(part.nbytes))
        gather(part, read, out)
        yield out


def _computed(group: Group, origin: Origin) -> tuple[mx.array, ...]:
    first = group.program.segments()[0]
    start = first if isinstance(first, Program) else Program(group.program.in_specs)
    views = start.views()
    read = origin.reader(group.sources, range(len(group.sources)))
    arrays = load_arrays([carried(view.spec) for view in views], lambda i, out: gather(views[i], read, out))
    return finish(group.program, tuple(arrays))
