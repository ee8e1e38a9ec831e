"""Sweeps: windows that lie between each other in one source are read together, each byte once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby

from weightloom.engine.reading.limits import Budget
from weightloom.engine.reading.runs import Stretch, joined, offsets
from weightloom.engine.reading.schedule import Staged, by_source, joined_from, schedule, spans_of
from weightloom.engine.views.axis import Axis, Factor, clip
from weightloom.engine.views.windows import Loop, Window


@dataclass(frozen=True, slots=True)
class Sweep:
    """Windows on one slot that are read together, from unit `start` of the source to `stop`."""

    windows: tuple[Window, ...]
    start: int
    stop: int

    def scratch(self, budget: Budget) -> int:
        """Give the most units that one read takes."""
        return min(budget.scratch, self.stop - self.start)

    def reads(self, budget: Budget) -> Iterator[Stretch]:
        """Give the stretches to read, ascending: short gaps lie inside, longer ones between."""
        found = merge(*(_stretches(window, budget.gap) for window in self.windows))
        for start, stop in joined(found, budget.gap):
            for at in range(start, stop, budget.scratch):
                yield at, min(stop, at + budget.scratch)


def sweeps(windows: Iterable[Window], budget: Budget) -> Iterator[Window | Sweep]:
    """Give windows that are read on their own as they are, others in sweeps; ascending by source."""
    ordered = sorted(windows, key=lambda window: (window.slot, window.source))
    for _, found in groupby(ordered, key=lambda window: window.slot):
        for cluster in _clusters(found):
            plans = (schedule(window.loops, budget) for window in cluster)
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


def _stretches(window: Window, gap: int) -> Iterator[Stretch]:
    """Give a window's source stretches, ascending; gaps shorter than `gap` lie inside."""
    loops = by_source(window.loops)
    spans = spans_of(loops)
    level = joined_from(loops, spans, gap)
    for _, source in offsets(loops[:level]):
        start = window.source + source
        yield start, start + spans[level]
