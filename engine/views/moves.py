"""Moves: the five invertible steps that all structural ops come down to.

A move acts on a flat tuple of slots, one slot a tensor. It holds all that its inverse needs. Dims and
slot numbers count from 0 upwards; whoever creates a move has resolved negative ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod
from typing import TypeVar

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.algebra import Algebra
from weightloom.engine.views.tiles import Shape

T = TypeVar("T")
Specs = tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class Reshape:
    """Slot `at` from shape `old` to shape `new`, its elements in row-major order."""

    at: int
    old: Shape
    new: Shape

    def inverse(self) -> Reshape:
        """Give the reshape back."""
        return Reshape(self.at, self.new, self.old)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs behind the move; PlanError if it does not fit."""
        spec = _slot(specs, self.at)
        if spec.shape != self.old:
            raise PlanError(
                f"a reshape got shape {list(spec.shape)}", expected=f"shape {list(self.old)}", field="shape"
            )
        if prod(self.old) != prod(self.new) or any(size < 0 for size in self.new):
            raise PlanError(
                f"shape {list(self.old)}, {prod(self.old)} elements, does not reshape to {list(self.new)}",
                expected=f"{prod(self.new)} elements",
                field="shape",
            )
        return _put(specs, self.at, 1, (TensorSpec(spec.dtype, self.new),))

    def apply(self, slots: tuple[T, ...], algebra: Algebra[T]) -> tuple[T, ...]:
        """Run the move on views or arrays."""
        return _put(slots, self.at, 1, (algebra.reshape(slots[self.at], self.new),))

    def widen(self, before: int, after: int) -> Reshape:
        """Give the same move among more slots: `before` on the left, `after` on the right."""
        return Reshape(self.at + before, self.old, self.new)


@dataclass(frozen=True, slots=True)
class Permute:
    """Slot `at` with its dim `axes[i]` in place i."""

    at: int
    axes: Shape

    def inverse(self) -> Permute:
        """Give the permutation back."""
        return Permute(self.at, _argsort(self.axes))

    def infer(self, specs: Specs) -> Specs:
        """Give the specs behind the move; PlanError if it does not fit."""
        spec = _slot(specs, self.at)
        if sorted(self.axes) != list(range(len(spec.shape))):
            raise PlanError(
                f"axes {list(self.axes)} do not reorder the {len(spec.shape)} dims of {spec}",
                expected="each dim once",
                field="axes",
            )
        shape = tuple(spec.shape[dim] for dim in self.axes)
        return _put(specs, self.at, 1, (TensorSpec(spec.dtype, shape),))

    def apply(self, slots: tuple[T, ...], algebra: Algebra[T]) -> tuple[T, ...]:
        """Run the move on views or arrays."""
        return _put(slots, self.at, 1, (algebra.permute(slots[self.at], self.axes),))

    def widen(self, before: int, after: int) -> Permute:
        """Give the same move among more slots: `before` on the left, `after` on the right."""
        return replace(self, at=self.at + before)


@dataclass(frozen=True, slots=True)
class Cut:
    """Slot `at` becomes len(sizes) slots, cut along `dim` into parts of these sizes."""

    at: int
    dim: int
    sizes: Shape

    def inverse(self) -> Join:
        """Give the join that puts the parts together again."""
        return Join(self.at, self.dim, self.sizes)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs behind the move; PlanError says the wanted and the got size if it does not fit."""
        spec = _slot(specs, self.at)
        _check_dim(spec, self.dim)
        if not self.sizes or min(self.sizes) < 0 or sum(self.sizes) != spec.shape[self.dim]:
            raise PlanError(
                f"parts of {list(self.sizes)} take {sum(self.sizes)}, but dim {self.dim} of {spec} has "
                f"{spec.shape[self.dim]}",
                expected=f"sizes that add up to {spec.shape[self.dim]}",
                field="sizes",
            )
        parts = tuple(TensorSpec(spec.dtype, _resized(spec.shape, self.dim, size)) for size in self.sizes)
        return _put(specs, self.at, 1, parts)

    def apply(self, slots: tuple[T, ...], algebra: Algebra[T]) -> tuple[T, ...]:
        """Run the move on views or arrays."""
        whole = slots[self.at]
        bounds = pairwise(accumulate(self.sizes, initial=0))
        parts = tuple(algebra.cut(whole, self.dim, start, stop) for start, stop in bounds)
        return _put(slots, self.at, 1, parts)

    def widen(self, before: int, after: int) -> Cut:
        """Give the same move among more slots: `before` on the left, `after` on the right."""
        return replace(self, at=self.at + before)


@dataclass(frozen=True, slots=True)
class Join:
    """len(sizes) slots from `at` on become one, laid one behind the other along `dim`."""

    at: int
    dim: int
    sizes: Shape

    def inverse(self) -> Cut:
        """Give the cut that takes the parts apart again."""
        return Cut(self.at, self.dim, self.sizes)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs behind the move; PlanError names the part that does not fit."""
        first = _slot(specs, self.at)
        _check_dim(first, self.dim)
        parts = specs[self.at : self.at + len(self.sizes)]
        if len(parts) != len(self.sizes) or not parts:
            raise PlanError(f"{len(parts)} tensors to join", expected=f"{len(self.sizes)}", field="sizes")
        for part, size in zip(parts, self.sizes, strict=True):
            if part.dtype != first.dtype or part.shape != _resized(first.shape, self.dim, size):
                wanted = TensorSpec(first.dtype, _resized(first.shape, self.dim, size))
                raise PlanError(f"{part} is to be joined along dim {self.dim}", expected=str(wanted))
        whole = TensorSpec(first.dtype, _resized(first.shape, self.dim, sum(self.sizes)))
        return _put(specs, self.at, len(parts), (whole,))

    def apply(self, slots: tuple[T, ...], algebra: Algebra[T]) -> tuple[T, ...]:
        """Run the move on views or arrays."""
        count = len(self.sizes)
        whole = algebra.join(slots[self.at : self.at + count], self.dim)
        return _put(slots, self.at, count, (whole,))

    def widen(self, before: int, after: int) -> Join:
        """Give the same move among more slots: `before` on the left, `after` on the right."""
        return replace(self, at=self.at + before)


@dataclass(frozen=True, slots=True)
class Reorder:
    """All slots, slot `order[i]` in place i."""

    order: tuple[int, ...]

    def inverse(self) -> Reorder:
        """Give the order back."""
        return Reorder(_argsort(self.order))

    def infer(self, specs: Specs) -> Specs:
        """Give the specs behind the move; PlanError if the order is not one of all slots."""
        if sorted(self.order) != list(range(len(specs))):
            raise PlanError(
                f"order {list(self.order)} for {len(specs)} tensors",
                expected="each tensor once",
                field="order",
            )
        return tuple(specs[slot] for slot in self.order)

    def apply(self, slots: tuple[T, ...], algebra: Algebra[T]) -> tuple[T, ...]:
        """Run the move on views or arrays."""
        return tuple(slots[slot] for slot in self.order)

    def widen(self, before: int, after: int) -> Reorder:
        """Give the same move among more slots: `before` on the left, `after` on the right."""
        end = before + len(self.order)
        moved = (slot + before for slot in self.order)
        return Reorder((*range(before), *moved, *range(end, end + after)))


Move = Reshape | Permute | Cut | Join | Reorder


def _slot(specs: Specs, at: int) -> TensorSpec:
    if not 0 <= at < len(specs):
        raise PlanError(f"a move on tensor {at}", expected=f"one of {len(specs)} tensors", field="at")
    return specs[at]


def _check_dim(spec: TensorSpec, dim: int) -> None:
    if not 0 <= dim < len(spec.shape):
        raise PlanError(f"dim {dim} of {spec}", expected=f"one of its {len(spec.shape)} dims", field="dim")


def _resized(shape: Shape, dim: int, size: int) -> Shape:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _argsort(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _put(slots: tuple[T, ...], at: int, count: int, new: tuple[T, ...]) -> tuple[T, ...]:
    """Put `new` where the `count` slots from `at` on are."""
    return (*slots[:at], *new, *slots[at + count :])
