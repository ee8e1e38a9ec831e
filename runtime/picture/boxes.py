"""Many numbers in few words: runs with a step, and boxes, in which each number stands with every other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from weightloom.runtime.picture.picture import Box, Run


def boxes(rows: Iterable[Sequence[int]]) -> tuple[Box, ...]:
    """Give boxes that hold these rows of numbers, all of one length, and no others; no two share a row."""
    found = {tuple(row) for row in rows}
    if not found:
        return ()
    return _boxes(found)


def _boxes(rows: set[tuple[int, ...]]) -> tuple[Box, ...]:
    if () in rows:
        return ((),)
    behind: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for first, *rest in rows:
        behind[first].add(tuple(rest))
    alike: dict[tuple[Box, ...], list[int]] = defaultdict(list)
    known: dict[frozenset[tuple[int, ...]], tuple[Box, ...]] = {}
    for first in sorted(behind):
        key = frozenset(behind[first])
        if key not in known:
            known[key] = _boxes(behind[first])
        alike[known[key]].append(first)
    return tuple((runs(firsts), *box) for rest, firsts in alike.items() for box in rest)


def runs(numbers: Sequence[int]) -> tuple[Run, ...]:
    """Give numbers, which go up, as runs of one step; two numbers alone are a run only where they are neighbours."""
    found: list[Run] = []
    at = 0
    while at < len(numbers):
        step = numbers[at + 1] - numbers[at] if at + 1 < len(numbers) else 1
        stop = at + 1
        while stop < len(numbers) and numbers[stop] - numbers[stop - 1] == step:
            stop += 1
        if step > 1 and stop - at < 3:
            stop, step = at + 1, 1
        found.append((numbers[at], numbers[stop - 1], step))
        at = stop
    return tuple(found)
