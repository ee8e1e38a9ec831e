"""A tensor with rows beyond those that count, and one without: Unpad, Pad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.errors import PlanError
from weightloom.engine.expressions import Expression
from weightloom.engine.ops.base import Amount, ConversionOp, amount, axis_of, relabel_single, target_shape
from weightloom.engine.ops.chain import Chain
from weightloom.engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Unpad(ConversionOp):
    """Keep the first `size` rows along `dim`; the others are no parameter, and are saved back as they were.

    `size`: a number or a config expression; by default as many as the parameter has. `padded` is the size before: a
    model that was never loaded is written with zeros up to it. A tensor of `size` rows stays as it is. Raises
    PlanError for one that has fewer.
    """

    needs_real_shapes: ClassVar[bool] = True

    dim: int = 0
    size: Amount | None = None
    padded: Amount | None = None

    def __post_init__(self) -> None:
        _check_amounts(self.size, self.padded)

    def lower(self, chain: Chain) -> None:
        """A cut whose second part is a remainder."""
        spec = chain.only("Unpad")
        dim = axis_of("Unpad", self.dim, len(spec.shape))
        rows, size = spec.shape[dim], _size("Unpad", self.size, chain, dim)
        if rows < size:
            raise PlanError(
                f"Unpad: {rows} rows along dim {dim} of {list(spec.shape)}",
                expected=f"{size} rows or more",
                field="operations",
            )
        if rows > size:
            chain.cut(0, dim, (size, rows - size))
            chain.keep(0, 1)
        relabel_single(chain)

    def inverse(self) -> Pad:
        """Put the rows back."""
        return Pad(self.dim, self.padded, self.size)


@dataclass(frozen=True, slots=True)
class Pad(ConversionOp):
    """Add rows of zeros along `dim`, up to `size`; they must be zeros still when the parameters are saved.

    `size`: a number or a config expression; by default as many as the parameter has. `unpadded` is the size before,
    for the way back of a model that was never loaded. Raises PlanError for a tensor with more rows.
    """

    needs_real_shapes: ClassVar[bool] = True

    dim: int = 0
    size: Amount | None = None
    unpadded: Amount | None = None

    def __post_init__(self) -> None:
        _check_amounts(self.size, self.unpadded)

    def lower(self, chain: Chain) -> None:
        """A join with a filler."""
        spec = chain.only("Pad")
        dim = axis_of("Pad", self.dim, len(spec.shape))
        rows, size = spec.shape[dim], _size("Pad", self.size, chain, dim)
        if rows > size:
            raise PlanError(
                f"Pad: {rows} rows along dim {dim} of {list(spec.shape)}",
                expected=f"{size} rows or fewer",
                field="operations",
            )
        if rows < size:
            chain.fill(0, TensorSpec(spec.dtype, (*spec.shape[:dim], size - rows, *spec.shape[dim + 1 :])))
            chain.join(0, dim)
        relabel_single(chain)

    def inverse(self) -> Unpad:
        """Cut the rows off."""
        return Unpad(self.dim, self.unpadded, self.size)


def _size(op: str, size: Amount | None, chain: Chain, dim: int) -> int:
    if size is not None:
        return amount(op, size, chain.context.config)
    shape = target_shape(op, chain, 0)
    return shape[axis_of(op, dim, len(shape))]


def _check_amounts(*sizes: Amount | None) -> None:
    for size in sizes:
        if isinstance(size, str):
            Expression(size)
