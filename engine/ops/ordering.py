"""Ops that put dims, or blocks of one dim, into another order: Permute, Rearrange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import ConversionOp, OnFactors, along, axis_of, relabel_single
from weightloom.engine.ops.chain import Chain


@dataclass(frozen=True, slots=True)
class Permute(ConversionOp):
    """Put dim `axes[i]` in place i, as `transpose(axes)` does. Raises PlanError for a tensor of other ndim."""

    needs_real_shapes: ClassVar[bool] = True

    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", _order(self.axes, "axes"))

    def lower(self, chain: Chain) -> None:
        """One permutation a tensor."""
        for number, part in enumerate(chain.parts):
            for item, spec in enumerate(part.specs):
                if len(spec.shape) != len(self.axes):
                    raise PlanError(
                        f"Permute: axes {list(self.axes)} for a tensor of {list(spec.shape)}",
                        expected=f"a tensor with {len(self.axes)} dims",
                        field="operations",
                    )
                chain.permute(number, item, self.axes)
        relabel_single(chain)

    def inverse(self) -> Permute:
        """The order back."""
        return Permute(_argsort(self.axes))


@dataclass(frozen=True, slots=True)
class Rearrange(ConversionOp):
    """Cut `dim` into as many equal blocks as `order` is long and put block `order[i]` in place i.

    Raises PlanError when the blocks would not be equal.
    """

    needs_real_shapes: ClassVar[bool] = True

    dim: int
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", _order(self.order, "order"))

    def lower(self, chain: Chain) -> None:
        """A cut, another order, a join: for each tensor a part of its own meanwhile."""
        parts, blocks = chain.parts, len(self.order)
        tensors = [(part.label, spec.shape) for part in parts for spec in part.specs]
        dims = [axis_of("Rearrange", self.dim, len(shape)) for _, shape in tensors]
        chain.regroup([(label, [slot]) for slot, (label, _) in enumerate(tensors)])
        for number, ((_, shape), dim) in enumerate(zip(tensors, dims, strict=True)):
            chain.cut(number, dim, _equal(shape, dim, blocks))
        chain.regroup([(label, [n * blocks + block for block in self.order]) for n, (label, _) in enumerate(tensors)])
        for number, dim in enumerate(dims):
            chain.join(number, dim)
        slots = iter(range(len(tensors)))
        chain.regroup([(part.label, [next(slots) for _ in part.specs]) for part in parts])
        relabel_single(chain)

    def inverse(self) -> Rearrange:
        """The order back."""
        return Rearrange(self.dim, _argsort(self.order))

    def on_factors(self, ndim: int) -> OnFactors:
        """Reorder the factor that has the dim, or both."""
        axis = axis_of("Rearrange", self.dim, ndim)
        return along(self, axis, ndim, Rearrange(axis - ndim, self.order), Rearrange(axis, self.order))


def _equal(shape: tuple[int, ...], dim: int, blocks: int) -> tuple[int, ...]:
    if shape[dim] % blocks:
        raise PlanError(
            f"Rearrange: {shape[dim]} rows along dim {dim} of {list(shape)} for {blocks} blocks",
            expected="a number of rows that the blocks share equally",
            field="operations",
        )
    return (shape[dim] // blocks,) * blocks


def _order(order: Any, field: str) -> tuple[int, ...]:
    found = tuple(order) if isinstance(order, list | tuple) else ()
    plain = all(isinstance(number, int) and not isinstance(number, bool) for number in found)
    if not plain or not found or sorted(found) != list(range(len(found))):
        raise RuleError(f"{field} is {order!r}", expected="each number from 0 up to their count once", field=field)
    return found


def _argsort(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))
