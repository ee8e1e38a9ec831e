"""Runs: which bytes of the sources a view needs; for accounting, without reading any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby

from weightloom.engine.views.view import View
from weightloom.engine.views.windows import Loop, Window, byte_windows, unit_of

Run = tuple[int, int, int]
Stretch = tuple[int, int]


def runs(view: View) -> Iterator[Run]:
    """Give the source runs that a view needs: (slot, byte offset in the slot's data, length in bytes).

    Ascending by slot and offset; adjacent runs are joined. PlanError as for `gather`.
    """
    width = unit_of(view.dtype).nbytes
    ordered = sorted(byte_windows(view), key=lambda window: (window.slot, window.source))
    for slot, found in groupby(ordered, key=lambda window: window.slot):
        for start, stop in joined(merge(*(_stretches(window) for window in found)), gap=1):
            yield slot, start * width, (stop - start) * width


def offsets(loops: tuple[Loop, ...]) -> Iterator[tuple[int, int]]:
    """Walk loops, the last one fastest: pairs (target offset, source offset)."""
    if not loops:
        yield 0, 0
        return
    count, target, source = loops[-1]
    for to, at in offsets(loops[:-1]):
        for _ in range(count):
            yield to, at
            to, at = to + target, at + source


def _stretches(window: Window) -> Iterator[Stretch]:
    """Give a window's source stretches as (start, stop), ascending."""
    loops = sorted(window.loops, key=lambda loop: -loop.source)
    run = 1
    while loops and loops[-1].source == run:
        run *= loops.pop().times
    for _, source in offsets(tuple(loops)):
        yield window.source + source, window.source + source + run


def joined(stretches: Iterable[Stretch], gap: int) -> Iterator[Stretch]:
    """Make one of neighbouring stretches, given ascending, that lie less than `gap` apart."""
    last: Stretch | None = None
    for start, stop in stretches:
        if last is not None and start - last[1] < gap:
            last = (last[0], max(stop, last[1]))
            continue
        if last is not None:
            yield last
        last = (start, stop)
    if last is not None:
        yield last
