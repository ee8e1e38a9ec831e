"""Window: one tile as a strided copy from a source tensor to the row-major target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.views.tiles import Shape, Tile, row_strides
from weightloom.engine.views.view import View


class Loop(NamedTuple):
    """`times` steps, `target` apart in the target and `source` apart in the source."""

    times: int
    target: int
    source: int


@dataclass(frozen=True, slots=True)
class Window:
    """Elements of `slot` from position `source` on go to position `target` on; loops nest on both sides.

    `loops` go from the longest to the shortest stride in the target.
    """

    slot: int
    target: int
    source: int
    loops: tuple[Loop, ...]

    @property
    def in_place(self) -> bool:
        """Whether each element has the same position on both sides."""
        return self.target == self.source and all(loop.target == loop.source for loop in self.loops)


@dataclass(frozen=True, slots=True)
class Unit:
    """The fewest elements that fill whole bytes: one, or for F4 two in a byte and for F6 four in three."""

    elements: int
    nbytes: int


@lru_cache(maxsize=64)
def unit_of(dtype: str | None) -> Unit:
    """Give a dtype's unit; PlanError if the dtype is open or unknown."""
    known = DTYPES.get(dtype or "")
    if known is None:
        raise PlanError(f"bytes of dtype {dtype}", expected=f"one of {', '.join(DTYPES)}", field="dtype")
    elements = 8 // gcd(known.bits, 8)
    return Unit(elements, elements * known.bits // 8)


def windows(view: View) -> Iterator[Window]:
    """Give a view's tiles as strided copies, counted in elements."""
    strides = row_strides(view.shape)
    for tile in view.tiles:
        start = sum(axis.start * stride for axis, stride in zip(tile.axes, strides, strict=True))
        yield Window(tile.slot, start, tile.offset, _fused(_loops(tile, strides)))


def byte_windows(view: View) -> Iterator[Window]:
    """Give a view's tiles as strided copies, counted in units of its dtype.

    A piece of a sub-byte tensor that does not start and end between two bytes is refused with PlanError.
    """
    elements = unit_of(view.dtype).elements
    for window in windows(view):
        yield window if elements == 1 else _in_units(window, elements, view)


def _loops(tile: Tile, strides: Shape) -> Iterator[Loop]:
    for axis, stride in zip(tile.axes, strides, strict=True):
        for count, step, source in axis.factors:
            yield Loop(count, step * stride, source)


def _fused(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Make one loop of two neighbours where the outer continues the inner on both sides."""
    kept: list[Loop] = []
    for loop in loops:
        count, target, source = loop
        if kept and kept[-1].target == count * target and kept[-1].source == count * source:
            loop = Loop(kept.pop().times * count, target, source)
        kept.append(loop)
    return tuple(kept)


def _in_units(window: Window, elements: int, view: View) -> Window:
    *outer, inner = window.loops or (Loop(1, 1, 1),)
    numbers = [window.target, window.source, inner.times, *(n for loop in outer for n in loop[1:])]
    if inner[1:] != (1, 1) or any(number % elements for number in numbers):
        raise PlanError(
            f"a piece of {view.spec} begins or ends inside a byte",
            expected=f"pieces of a multiple of {elements} elements, as they share bytes",
            hint="cut and join along another dim, or by sizes that fill whole bytes",
            field="dtype",
        )
    loops = [Loop(n, target // elements, source // elements) for n, target, source in outer]
    last = Loop(inner.times // elements, 1, 1)
    return Window(window.slot, window.target // elements, window.source // elements, _fused(_real((*loops, last))))


def _real(loops: Iterable[Loop]) -> Iterator[Loop]:
    return (loop for loop in loops if loop.times > 1)
