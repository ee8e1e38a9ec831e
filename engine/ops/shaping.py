"""Ops that give a tensor other dims, its elements in order: Reshape, Flatten, Unflatten, Squeeze, Unsqueeze."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import (
    Amount,
    ConversionOp,
    axis_of,
    frozen_sizes,
    relabel_single,
    sizes_of,
    target_shape,
)
from weightloom.engine.ops.chain import Chain
from weightloom.engine.views.tiles import Shape


@dataclass(frozen=True, slots=True)
class Reshape(ConversionOp):
    """Give a tensor another shape: numbers or config expressions, one of them -1 for what is left.

    Without `shape` it takes that of its parameter. `back` is the shape before, for the way back of a model that was
    never loaded. Raises PlanError where the elements do not fit.
    """

    needs_real_shapes: ClassVar[bool] = True

    shape: tuple[Amount, ...] | None = None
    back: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", frozen_sizes(self.shape))
        object.__setattr__(self, "back", frozen_sizes(self.back))

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""
        config = chain.context.config

        def shape(old: Shape, part: int) -> Shape:
            wanted = target_shape("Reshape", chain, part) if self.shape is None else self.shape
            return sizes_of("Reshape", wanted, prod(old), config)

        _reshape_each(chain, shape)

    def inverse(self) -> Reshape:
        """The shape before."""
        return Reshape(self.back, self.shape)


@dataclass(frozen=True, slots=True)
class Flatten(ConversionOp):
    """Make one dim of the dims from `start_dim` to `end_dim`; `sizes` are theirs, for the way back.

    Negative dims count from the end. Raises RuleError for a negative start with an end that is not, and PlanError
    for dims that are not there.
    """

    start_dim: int = 0
    end_dim: int = -1
    sizes: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", frozen_sizes(self.sizes))
        _check_range("Flatten", self.start_dim, self.end_dim)

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""

        def shape(old: Shape, _: int) -> Shape:
            start, end = _range("Flatten", self.start_dim, self.end_dim, len(old))
            return (*old[:start], prod(old[start : end + 1]), *old[end + 1 :])

        _reshape_each(chain, shape)

    def inverse(self) -> Unflatten:
        """Make several of it again."""
        return Unflatten(self.start_dim, self.end_dim, self.sizes)


@dataclass(frozen=True, slots=True)
class Unflatten(ConversionOp):
    """Make several dims of one: those from `start_dim` to `end_dim` of the result.

    `sizes`: numbers or config expressions, one of them -1 for what is left; by default those of the parameter.
    """

    needs_real_shapes: ClassVar[bool] = True

    start_dim: int = 0
    end_dim: int = -1
    sizes: tuple[Amount, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", frozen_sizes(self.sizes))
        _check_range("Unflatten", self.start_dim, self.end_dim)

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""
        config = chain.context.config

        def shape(old: Shape, part: int) -> Shape:
            known = self.sizes
            ndim = len(target_shape("Unflatten", chain, part)) if known is None else len(old) - 1 + len(known)
            start, end = _range("Unflatten", self.start_dim, self.end_dim, ndim)
            wanted = target_shape("Unflatten", chain, part)[start : end + 1] if known is None else known
            if len(wanted) != end + 1 - start or len(old) + len(wanted) - 1 != ndim:
                raise PlanError(
                    f"Unflatten: {list(old)} to dims {start} to {end} of {ndim}, with sizes {list(wanted)}",
                    expected="a size for each of these dims",
                    field="operations",
                )
            return (*old[:start], *sizes_of("Unflatten", wanted, old[start], config), *old[start + 1 :])

        _reshape_each(chain, shape)

    def inverse(self) -> Flatten:
        """Make one of them again."""
        return Flatten(self.start_dim, self.end_dim, self.sizes)


@dataclass(frozen=True, slots=True)
class Squeeze(ConversionOp):
    """Take a dim of size one away. Raises PlanError when it is longer."""

    needs_real_shapes: ClassVar[bool] = True

    dim: int = 0

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""

        def shape(old: Shape, _: int) -> Shape:
            dim = axis_of("Squeeze", self.dim, len(old))
            if old[dim] != 1:
                raise PlanError(f"Squeeze: dim {dim} of {list(old)}", expected="a dim of size 1", field="operations")
            return (*old[:dim], *old[dim + 1 :])

        _reshape_each(chain, shape)

    def inverse(self) -> Unsqueeze:
        """Put it back."""
        return Unsqueeze(self.dim)


@dataclass(frozen=True, slots=True)
class Unsqueeze(ConversionOp):
    """Put in a dim of size one, number `dim` of the result."""

    dim: int = 0

    def lower(self, chain: Chain) -> None:
        """One reshape a tensor."""

        def shape(old: Shape, _: int) -> Shape:
            dim = axis_of("Unsqueeze", self.dim, len(old), new=True)
            return (*old[:dim], 1, *old[dim:])

        _reshape_each(chain, shape)

    def inverse(self) -> Squeeze:
        """Take it away."""
        return Squeeze(self.dim)


def _reshape_each(chain: Chain, shape: Callable[[Shape, int], Shape]) -> None:
    for number, part in enumerate(chain.parts):
        for item, spec in enumerate(part.specs):
            chain.reshape(number, item, shape(spec.shape, number))
    relabel_single(chain)


def _check_range(op: str, start: int, end: int) -> None:
    same_sign = (start < 0) == (end < 0)
    if (start < 0 <= end) or (same_sign and end < start):
        raise RuleError(f"{op}: dims {start} to {end}", expected="a first dim and a last one behind it", field="dim")


def _range(op: str, start: int, end: int, ndim: int) -> tuple[int, int]:
    first, last = axis_of(op, start, ndim), axis_of(op, end, ndim)
    if last < first:
        raise PlanError(f"{op}: dims {first} to {last} of {ndim}", expected="a first dim and a last one behind it")
    return first, last
