"""Sweeps: windows that lie between each other in one source are read together, each byte once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby

from weightloom.engine.axis import Axis, Factor, clip
from weightloom.engine.runs import Stretch, joined, offsets
from weightloom.engine.schedule import JOIN_GAP, Staged, by_source, joined_from, schedule, spans_of
from weightloom.engine.windows import Loop, Window


@dataclass(frozen=True, slots=True)
class Sweep:
    """Windows on one slot that are read together, from unit `start` of the source to `stop`."""

    windows: tuple[Window, ...]
    start: int
    stop: int

    def scratch(self, limit: int) -> int:
        """Give the most units that one read takes, with at most `limit` a read."""
        return min(limit, self.stop - self.start)

    def reads(self, width: int, limit: int) -> Iterator[Stretch]:
        """Give the stretches to read; gaps shorter than 64 KiB lie inside, longer ones between."""
        found = merge(*(_stretches(window, width) for window in self.windows))
        for start, stop in joined(found, JOIN_GAP / width):
            for at in range(start, stop, limit):
                yield at, min(stop, at + limit)


def sweeps(windows: Iterable[Window], width: int, scratch_bytes: int) -> Iterator[Window | Sweep]:
    """Give windows that are read on their own as they are, others in sweeps; ascending by source."""
    ordered = sorted(windows, key=lambda window: (window.slot, window.source))
    for _, found in groupby(ordered, key=lambda window: window.slot):
        for cluster in _clusters(found):
            plans = (schedule(window.loops, width, scratch_bytes) for window in cluster)
            if len(cluster) > 1 and any(isinstance(plan, Staged) for plan in plans):
                yield Sweep(tuple(cluster), cluster[0].source, max(_stop(window) for window in cluster))
            else:
                yield from cluster


def clipped(window: Window, start: int, stop: int) -> Iterator[Window]:
    """Give what a window takes from [start, stop) of the source, its source counted from `start` on."""
    factors = (Factor(loop.times, loop.source, loop.target) for loop in by_source(window.loops))
    for target, axis in clip(Axis(window.source, tuple(factors)), start, stop):
        loops = tuple(Loop(times, stride, step) for times, step, stride in axis.factors)
        yield Window(window.slot, window.target + target, axis.start, loops)


def _stop(window: Window) -> int:
    return window.source + spans_of(by_source(window.loops))[0]


def _clusters(windows: Iterable[Window]) -> Iterator[list[Window]]:
    """Group windows, ascending by source, whose source stretches overlap."""
    cluster: list[Window] = []
    end = 0
    for window in windows:
        if cluster and window.source >= end:
            yield cluster
            cluster = []
        cluster.append(window)
        end = max(end, _stop(window))
    if cluster:
        yield cluster


def _stretches(window: Window, width: int) -> Iterator[Stretch]:
    """Give a window's source stretches, ascending; gaps shorter than 64 KiB lie inside."""
    loops = by_source(window.loops)
    spans = spans_of(loops)
    level = joined_from(loops, spans, width)
    for _, source in offsets(loops[:level]):
        start = window.source + source
        yield start, start + spans[level]
