"""Schedule: how one window's bytes are read, so that scratch stays bounded and no byte is read twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from weightloom.engine.windows import Loop

JOIN_GAP = 64 << 10
DIRECT_RUN = 16 << 10


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
def schedule(loops: tuple[Loop, ...], width: int, scratch_bytes: int) -> Direct | Staged:
    """Choose how to read a window's loops, of units of `width` bytes, within `scratch_bytes` of scratch.

    Scratch is never less than one unit, whatever the limit.
    """
    ordered = by_source(loops)
    return _direct(ordered, width) or _staged(ordered, width, limit_of(width, scratch_bytes))


def limit_of(width: int, scratch_bytes: int) -> int:
    """Give how many units fit into scratch: at least one."""
    return max(1, scratch_bytes // width)


def by_source(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Order loops by their stride in the source, the longest first."""
    return tuple(sorted(loops, key=lambda loop: -loop.source))


def spans_of(loops: tuple[Loop, ...]) -> tuple[int, ...]:
    """Give, for each loop, the units from the first to the last that it and those inside it visit."""
    spans = [1]
    for loop in reversed(loops):
        spans.append(spans[-1] + (loop.times - 1) * loop.source)
    return tuple(reversed(spans))


def _direct(loops: tuple[Loop, ...], width: int) -> Direct | None:
    inner = loops[-1] if loops and loops[-1][1:] == (1, 1) else None
    outer, run = (loops[:-1], inner.times) if inner else (loops, 1)
    gap = outer[-1].source - run if outer else JOIN_GAP
    return Direct(outer, run) if run * width >= DIRECT_RUN or gap * width >= JOIN_GAP or not outer else None


def _staged(loops: tuple[Loop, ...], width: int, limit: int) -> Staged:
    spans = spans_of(loops)
    joined = joined_from(loops, spans, width)
    if spans[joined] <= limit:
        level, chunk = _level_of_reads(loops, joined, spans[joined], limit)
    else:
        level, chunk = _level_in_read(loops, spans, limit)
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


def joined_from(loops: tuple[Loop, ...], spans: tuple[int, ...], width: int) -> int:
    """Give the outermost loop from which on all gaps are short enough to be read along."""
    level = len(loops)
    while level and (loops[level - 1].source - spans[level]) * width < JOIN_GAP:
        level -= 1
    return level
