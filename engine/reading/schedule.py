"""Schedule: how one window's bytes are read, so that scratch stays bounded and no byte is read twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from weightloom.engine.reading.limits import Budget
from weightloom.engine.views.windows import Loop


@dataclass(frozen=True, slots=True)
class Direct:
    """Read each run straight to its place: `run` units at every step of the `outer` loops."""

    outer: tuple[Loop, ...]
    run: int


@dataclass(frozen=True, slots=True)
class Staged:
    """Read block by block into scratch, then place the elements; all numbers in units.

    A block is up to `chunk` steps of the `ranged` loop, each with all steps of the `inner` loops; there is
    one for every step of the `outer` loops and every chunk. The first `packed` loops of a block (ranged and
    inner) are reads of `span` each, put one behind the other; the others are read along, gaps and all.
    With none packed, a block is one read, `span` being that of one step of the ranged loop.
    """

    outer: tuple[Loop, ...]
    ranged: Loop
    inner: tuple[Loop, ...]
    chunk: int
    packed: int
    span: int

    def units(self, steps: int) -> int:
        """Give the scratch that a block of `steps` steps of the ranged loop takes."""
        if not self.packed:
            return (steps - 1) * self.ranged.source + self.span
        return steps * self.span * prod(loop.times for loop in self.inner[: self.packed - 1])


@lru_cache(maxsize=4096)
def schedule(loops: tuple[Loop, ...], budget: Budget) -> Direct | Staged:
    """Choose how to read a window's loops within a budget counted in the window's units."""
    ordered = by_source(loops)
    return _direct(ordered, budget) or _staged(ordered, budget)


def by_source(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Order loops by their stride in the source, the longest first."""
    return tuple(sorted(loops, key=lambda loop: -loop.source))


def spans_of(loops: tuple[Loop, ...]) -> tuple[int, ...]:
    """Give, for each loop, the units from the first to the last that it and those inside it visit."""
    spans = [1]
    for loop in reversed(loops):
        spans.append(spans[-1] + (loop.times - 1) * loop.source)
    return tuple(reversed(spans))


def _direct(loops: tuple[Loop, ...], budget: Budget) -> Direct | None:
    inner = loops[-1] if loops and loops[-1][1:] == (1, 1) else None
    outer, run = (loops[:-1], inner.times) if inner else (loops, 1)
    alone = not outer or outer[-1].source - run >= budget.gap
    return Direct(outer, run) if alone or run >= budget.run else None


def _staged(loops: tuple[Loop, ...], budget: Budget) -> Staged:
    spans = spans_of(loops)
    joined = joined_from(loops, spans, budget.gap)
    if spans[joined] <= budget.scratch:
        level, chunk = _level_of_reads(loops, joined, spans[joined], budget.scratch)
    else:
        level, chunk = _level_in_read(loops, spans, budget.scratch)
    packed = max(0, joined - level)
    span = spans[joined] if packed else spans[level + 1]
    return Staged(loops[:level], loops[level], loops[level + 1 :], chunk, packed, span)


def _level_of_reads(loops: tuple[Loop, ...], joined: int, span: int, limit: int) -> tuple[int, int]:
    """Find the ranged loop and its chunk where whole reads of `span` fit into scratch."""
    size, level = span, joined
    while level and size * loops[level - 1].times <= limit:
        level -= 1
        size *= loops[level].times
    return (level - 1, limit // size) if level else (0, loops[0].times)


def _level_in_read(loops: tuple[Loop, ...], spans: tuple[int, ...], limit: int) -> tuple[int, int]:
    """Find the ranged loop and its chunk where one read must be cut to fit into scratch."""
    level = next(level for level, span in enumerate(spans) if span <= limit) - 1
    return level, (limit - spans[level + 1]) // loops[level].source + 1


def joined_from(loops: tuple[Loop, ...], spans: tuple[int, ...], gap: int) -> int:
    """Give the outermost loop from which on all steps lie less than `gap` apart."""
    level = len(loops)
    while level and loops[level - 1].source - spans[level] < gap:
        level -= 1
    return level
