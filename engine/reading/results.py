"""The bytes of what groups make, read or computed from an origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weightloom.engine.carrier import carried, memory_of
from weightloom.engine.planning.groups import Group
from weightloom.engine.reading.gather import Reader, gather
from weightloom.engine.reading.origin import BLOCK, Origin
from weightloom.engine.reading.virtual_file import load_arrays
from weightloom.engine.spec import TensorSpec
from weightloom.engine.steps.values import finish
from weightloom.engine.views.blocks import blocks
from weightloom.engine.views.program import Program
from weightloom.engine.views.view import View

if TYPE_CHECKING:
    import mlx.core as mx

# A file takes turns between the experts' gates and ups, which are one group, and their downs, which are another.
_REMEMBERED = 2


class Results:
    """Gives the bytes of groups' results; lives for one save.

    Of a group that changes values all results are computed at once. Where there are several, the last groups
    are remembered, since the results of one may lie apart in the file.
    """

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._recent: list[tuple[Group, tuple[mx.array, ...]]] = []

    def pieces(self, group: Group, number: int) -> Iterator[memoryview]:
        """Give the bytes of one result, in order, in blocks of some MiB."""
        if group.program.is_structural:
            view = group.program.views()[number]
            return _gathered(view, self._origin.reader(group, view.slots))
        return iter((memory_of(self._computed(group)[number]),))

    def _computed(self, group: Group) -> tuple[mx.array, ...]:
        for known, arrays in self._recent:
            if known is group:
                return arrays
        self._recent = self._recent[: _REMEMBERED - 1]
        arrays = _compute(group, self._origin)
        if len(group.targets) > 1:
            self._recent.insert(0, (group, arrays))
        return arrays


def source_pieces(group: Group, slot: int, origin: Origin) -> Iterator[memoryview]:
    """Give the bytes of one source of a group, as the origin has them, in blocks of some MiB."""
    return _gathered(View.identity(slot, group.program.in_specs[slot]), origin.reader(group, (slot,)))


def block_bytes(spec: TensorSpec) -> int:
    """Give the most bytes that are held of a tensor of this kind while it comes in blocks."""
    return min(BLOCK, spec.nbytes)


def _gathered(view: View, read: Reader) -> Iterator[memoryview]:
    for block in blocks(view, BLOCK):
        out = memoryview(bytearray(block.nbytes))
        gather(block.view, read, out)
        yield out


def _compute(group: Group, origin: Origin) -> tuple[mx.array, ...]:
    first = group.program.segments()[0]
    start = first if isinstance(first, Program) else Program(group.program.in_specs)
    views = start.views()
    read = origin.reader(group, range(len(group.program.in_specs)))
    arrays = load_arrays([carried(view.spec) for view in views], lambda i, out: gather(views[i], read, out))
    return finish(group.program, list(arrays), group.sources)
