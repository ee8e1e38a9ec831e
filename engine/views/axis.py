"""Axis: which positions a tile covers along one dim of a view, and how far apart they lie in the source.

The positions are `start + sum(index * step)` over the factors, and the element there is found
`sum(index * stride)` elements into the source. Factors go from outer to inner and nest: one step of a
factor is longer than everything inside it reaches. That makes merging dims exact without cutting, and
keeps the factors of a merged dim, so that it can be split again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple


class Factor(NamedTuple):
    """One loop of an axis: `times` positions, `step` apart in the view, `stride` apart in the source."""

    times: int
    step: int
    stride: int


Factors = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """The positions that a tile covers along one dim; no factors means the one position `start`."""

    start: int = 0
    factors: Factors = ()


def reach(factors: Iterable[Factor]) -> int:
    """Give the distance in the view from the first position to the last."""
    return sum((count - 1) * step for count, step, _ in factors)


def fused(factors: Iterable[Factor]) -> Factors:
    """Drop loops of one, and make one loop of two neighbours where the outer continues the inner."""
    kept: list[Factor] = []
    for factor in factors:
        if factor.times == 1:
            continue
        count, step, stride = factor
        if kept and kept[-1].step == count * step and kept[-1].stride == count * stride:
            factor = Factor(kept.pop().times * count, step, stride)
        kept.append(factor)
    return tuple(kept)


def merge(outer: Axis, inner: Axis, size: int) -> Axis:
    """Make one dim of two neighbours; `size` is the size of the inner one in the view."""
    widened = [Factor(count, step * size, stride) for count, step, stride in outer.factors]
    return Axis(outer.start * size + inner.start, fused((*widened, *inner.factors)))


def clip(axis: Axis, start: int, stop: int) -> Iterator[tuple[int, Axis]]:
    """Keep the positions in [start, stop), counted from `start` on: pairs (source offset, axis)."""
    first = axis.start - start
    for position, offset, factors in _within(axis.factors, -first, stop - axis.start):
        yield offset, Axis(first + position, fused(factors))


def _within(factors: Factors, low: int, high: int) -> Iterator[tuple[int, int, Factors]]:
    last = reach(factors)
    if last < low or high <= 0:
        return
    if low <= 0 and last < high:
        yield 0, 0, factors
        return
    (count, step, stride), rest = factors[0], factors[1:]
    inner = last - (count - 1) * step
    begin, end = max(0, -(-low // step)), min(count, (high - 1 - inner) // step + 1)
    if begin < end:
        yield begin * step, begin * stride, (Factor(end - begin, step, stride), *rest)
    # Factors nest, so at most one index on each side is cut through.
    for index in _edges(max(0, -((inner - low) // step)), min(count, -(-high // step)), begin, end):
        for position, offset, kept in _within(rest, low - index * step, high - index * step):
            yield index * step + position, index * stride + offset, kept


def _edges(first: int, stop: int, begin: int, end: int) -> list[int]:
    """Give the indices at the ends of [first, stop) that are not in [begin, end)."""
    return [index for index in sorted({first, stop - 1}) if first <= index < stop and not begin <= index < end]


def split(axis: Axis, size: int) -> Iterator[tuple[int, Axis, Axis]]:
    """Make two dims of one; `size` is that of the inner: triples (source offset, outer, inner)."""
    row, column = divmod(axis.start, size)
    inner = tuple(factor for factor in axis.factors if factor.step % size)
    if column + reach(inner) < size:
        outer = tuple(Factor(n, step // size, stride) for n, step, stride in axis.factors if not step % size)
        yield 0, Axis(row, fused(outer)), Axis(column, inner)
        return
    for offset, part in _divided(axis, size):
        for more, low, high in split(part, size):
            yield offset + more, low, high


def _divided(axis: Axis, size: int) -> Iterator[tuple[int, Axis]]:
    """Cut an axis so that its outermost loop that crosses rows of `size` no longer does."""
    at = next(i for i, factor in enumerate(axis.factors) if factor.step % size)
    before, factor, rest = axis.factors[:at], axis.factors[at], axis.factors[at + 1 :]
    column = axis.start % size
    aligned = size % factor.step == 0 and column % factor.step + reach(rest) < factor.step
    parts = _by_rows(factor, size, column) if aligned else _by_residue(factor, size)
    for index, loops in parts:
        kept = (*before, *(loop for loop in loops if loop.times > 1), *rest)
        yield index * factor.stride, Axis(axis.start + index * factor.step, kept)


def _by_rows(factor: Factor, size: int, column: int) -> Iterator[tuple[int, Factors]]:
    """Cut a loop into the rest of the row it starts in, whole rows, and the begin of the last row."""
    count, step, stride = factor
    period = size // step
    head = min(count, -(column // step) % period)
    rows, tail = divmod(count - head, period)
    if head:
        yield 0, (Factor(head, step, stride),)
    if rows:
        yield head, (Factor(rows, size, stride * period), Factor(period, step, stride))
    if tail:
        yield count - tail, (Factor(tail, step, stride),)


def _by_residue(factor: Factor, size: int) -> Iterator[tuple[int, Factors]]:
    """Cut a loop into those of its positions that lie at the same column of a row."""
    count, step, stride = factor
    period = size // gcd(step, size)
    for first in range(min(period, count)):
        number = -(-(count - first) // period)
        yield first, (Factor(number, step * period, stride * period),)
