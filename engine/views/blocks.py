"""Blocks: a view in pieces of bounded size, each contiguous in the row-major whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weightloom.engine.views.view import View
from weightloom.engine.views.windows import unit_of


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a view, and the byte of the whole at which it begins."""

    view: View
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of the part."""
        return self.view.nbytes


def blocks(view: View, limit: int) -> Iterator[Block]:
    """Cut a view into parts of at most `limit` bytes, in order; never less than one element, or the bytes it shares.

    A part may be larger where elements share bytes along more than the last dim.
    """
    yield from _cut(Block(view, 0), 0, limit)


def _cut(block: Block, dim: int, limit: int) -> Iterator[Block]:
    view = block.view
    if view.nbytes <= limit or dim == len(view.shape):
        yield block
        return
    rows = view.shape[dim]
    whole = view.nbytes
    step = _step(view, dim, limit * rows // whole)
    start = block.start
    for first in range(0, rows, step):
        part = Block(view.cut(dim, first, min(first + step, rows)), start)
        yield from _cut(part, dim + 1, limit) if step == 1 else (part,)
        start += part.nbytes


def _step(view: View, dim: int, fitting: int) -> int:
    """Give the rows of a part: as many as fit, whole bytes of them, one at least."""
    inner = 1
    for size in view.shape[dim + 1 :]:
        inner *= size
    shared = unit_of(view.dtype).elements
    while shared > 1 and inner % 2 == 0:
        shared, inner = shared // 2, inner // 2
    return max(fitting // shared, 1) * shared
