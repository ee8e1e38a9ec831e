"""Tile: a strided window on one source slot, placed in a view's index space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import mul

from weightloom.engine.views.axis import Axis, Factor, Factors, clip, fused, merge, split

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """Elements of one slot: one axis for every dim of the view; `offset` is that of the first, in elements.

    The strides of all factors of a tile nest in the source as the steps do in the view, so walking
    them from the longest stride to the shortest visits the source in ascending order.
    """

    slot: int
    offset: int
    axes: tuple[Axis, ...]

    def permute(self, order: Shape) -> Tile:
        """Put dim `order[i]` in place i."""
        return Tile(self.slot, self.offset, tuple(self.axes[dim] for dim in order))

    def shifted(self, dim: int, by: int) -> Tile:
        """Move the tile along one dim of the view."""
        axis = self.axes[dim]
        return self._with(dim, Axis(axis.start + by, axis.factors), 0)

    def cut(self, dim: int, start: int, stop: int) -> Iterator[Tile]:
        """Give what lies in [start, stop) of one dim, placed relative to `start`."""
        for offset, axis in clip(self.axes[dim], start, stop):
            yield self._with(dim, axis, offset)

    def reshape(self, old: Shape, new: Shape) -> Iterator[Tile]:
        """Follow a reshape of the whole view from shape `old` to `new` (no size 0 in either)."""
        for offset, axes in _reshaped(self.axes, old, groups(old, new)):
            yield Tile(self.slot, self.offset + offset, axes)

    def _with(self, dim: int, axis: Axis, offset: int) -> Tile:
        axes = (*self.axes[:dim], axis, *self.axes[dim + 1 :])
        return Tile(self.slot, self.offset + offset, axes)


@dataclass(frozen=True, slots=True)
class Group:
    """Old dims [start, stop) and the new sizes that they become; both have the same product."""

    start: int
    stop: int
    sizes: Shape


@lru_cache(maxsize=4096)
def groups(old: Shape, new: Shape) -> tuple[Group, ...]:
    """Pair the smallest runs of old and new dims with equal products; no size may be 0."""
    found: list[Group] = []
    i = j = 0
    while i < len(old) or j < len(new):
        start, first = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        have, want = prod(old[start:i]), prod(new[first:j])
        while have != want:
            if have < want:
                have, i = have * old[i], i + 1
            else:
                want, j = want * new[j], j + 1
        found.append(Group(start, i, new[first:j]))
    return tuple(found)


@lru_cache(maxsize=4096)
def row_major(shape: Shape) -> tuple[Axis, ...]:
    """Give the axes of a whole tensor that lies in row-major order."""
    pairs = zip(shape, row_strides(shape), strict=True)
    return tuple(Axis(0, fused((Factor(size, 1, stride),))) for size, stride in pairs)


@lru_cache(maxsize=4096)
def row_strides(shape: Shape) -> Shape:
    """Give how many elements one step of each dim is, in row-major order."""
    inner_first = accumulate(reversed(shape[1:]), mul, initial=1)
    return tuple(reversed(tuple(inner_first)))[: len(shape)]


def _reshaped(axes: tuple[Axis, ...], old: Shape, plan: tuple[Group, ...]) -> Iterator[tuple[int, tuple[Axis, ...]]]:
    if not plan:
        yield 0, ()
        return
    for offset, head in _regrouped(axes, old, plan[0]):
        for more, tail in _reshaped(axes, old, plan[1:]):
            yield offset + more, (*head, *tail)


def _regrouped(axes: tuple[Axis, ...], old: Shape, group: Group) -> Iterator[tuple[int, tuple[Axis, ...]]]:
    if group.sizes == old[group.start : group.stop]:
        yield 0, axes[group.start : group.stop]
        return
    whole = Axis()
    for dim in range(group.start, group.stop):
        whole = merge(whole, axes[dim], old[dim])
    yield from _unmerged(whole, group.sizes)


def _unmerged(axis: Axis, sizes: Shape) -> Iterator[tuple[int, tuple[Axis, ...]]]:
    if len(sizes) < 2:
        yield 0, (axis,) * len(sizes)
        return
    for offset, outer, inner in split(axis, prod(sizes[1:])):
        for more, tail in _unmerged(inner, sizes[1:]):
            yield offset + more, (outer, *tail)


def fuse(a: Tile, b: Tile, dim: int) -> Tile | None:
    """Make one tile of two, `b` lying behind `a` along `dim`, or None where they do not continue."""
    if a.slot != b.slot or not _same_but(a, b, dim):
        return None
    step, stride = b.axes[dim].start - a.axes[dim].start, b.offset - a.offset
    factors = _continued(a.axes[dim].factors, b.axes[dim].factors, step, stride)
    if factors is None:
        return None
    # A step may be shorter than those inside `a`, where `b` lies between its elements.
    ordered = sorted(factors, key=lambda factor: -factor.step)
    axes = (*a.axes[:dim], Axis(a.axes[dim].start, fused(ordered)), *a.axes[dim + 1 :])
    in_source = ((f.stride, f.times) for axis in axes for f in axis.factors)
    in_view = ((f.step, f.times) for f in ordered)
    return Tile(a.slot, a.offset, axes) if _nests(in_source) and _nests(in_view) else None


def _same_but(a: Tile, b: Tile, dim: int) -> bool:
    return a.axes[:dim] == b.axes[:dim] and a.axes[dim + 1 :] == b.axes[dim + 1 :]


def _continued(a: Factors, b: Factors, step: int, stride: int) -> Factors | None:
    """Find the factors that walk `a` and then `b`, which begins `step` and `stride` later."""
    if a == b:
        return (Factor(2, step, stride), *a)
    first = _led(a, b)
    second = _led(b, a) if first is None else None
    if first is None and second is None and a and b and a[0][1:] == b[0][1:] and a[1:] == b[1:]:
        first, second = a[0], b[0]
    head = first or second
    if head is None:
        return None
    before = first.times if first else 1
    after = second.times if second else 1
    if (step, stride) != (before * head.step, before * head.stride):
        return None
    return (Factor(before + after, head.step, head.stride), *(a[1:] if first else a))


def _led(longer: Factors, shorter: Factors) -> Factor | None:
    """Give the outermost factor of `longer` if the others are those of `shorter`."""
    return longer[0] if longer and longer[1:] == shorter else None


def _nests(loops: Iterable[tuple[int, int]]) -> bool:
    """Tell whether each of the loops, as (stride, times), steps over all that the shorter ones reach."""
    covered = 0
    for stride, times in sorted(loops):
        if stride <= covered:
            return False
        covered += (times - 1) * stride
    return True
