"""The value steps from block formats to floats: what they take, and what they give."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.codings.block_codes import e4m3_values, e8m0_values, nvfp4_values
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.rank_slice import Slice

if TYPE_CHECKING:
    import mlx.core as mx

_NVFP4_BLOCK = 16
_MXFP8_BLOCK = 32
_DIMS = 3
_FACTORS = ("F32", "BF16", "F16")


@dataclass(frozen=True, slots=True)
class FromNvfp4:
    """Slots `at` on: weight, scale, amax, denominator, of `taken` specs, to one tensor of `dtype`."""

    at: int
    dtype: str
    taken: Specs

    @property
    def arity(self) -> int:
        """Four."""
        return 4

    def infer(self, specs: Specs) -> Specs:
        """Give (experts, rows, columns); PlanError where the four do not belong together."""
        weight, scale, amax, denominator = specs
        shape = weight.shape if weight.dtype == "F4" else (*weight.shape[:-1], 2 * (weight.shape or (0,))[-1])
        _check("weight", weight, ("U8", "F4"), len(shape) == _DIMS and shape[-1] % _NVFP4_BLOCK == 0)
        _check("scale", scale, ("F8_E4M3", "U8"), scale.shape == (*shape[:-1], shape[-1] // _NVFP4_BLOCK))
        _check("amax", amax, _FACTORS, prod(amax.shape) in (1, shape[0]))
        _check("denominator", denominator, _FACTORS, prod(denominator.shape) in (1, shape[0]))
        return (TensorSpec(self.dtype, shape),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute in F32, one expert at a time, and round once."""
        import mlx.core as mx

        weight, scale, amax, denominator = arrays
        factors = amax.astype(mx.float32).reshape(-1) / denominator.astype(mx.float32).reshape(-1)
        factors = mx.broadcast_to(factors, (weight.shape[0],))
        made = [
            _rounded(nvfp4_values(codes) * e4m3_values(scales)[..., None] * factor, self.dtype)
            for codes, scales, factor in zip(weight, scale, factors, strict=True)
        ]
        return (_stacked(made, self.infer(self.taken)[0]),)

    def part(self, rows: Slice) -> tuple[FromNvfp4, tuple[Slice | None, ...]] | None:
        """Make some experts, rows, or columns in whole blocks."""
        (made,) = self.infer(self.taken)
        weight, _, *factors = self.taken
        cut = _of_codes(rows, made.shape[-1] // max(weight.shape[-1], 1), _NVFP4_BLOCK)
        per_expert = [spec for spec in factors if prod(spec.shape) > 1]
        if cut is None or (rows.dim == 0 and any(spec.shape[0] != made.shape[0] for spec in per_expert)):
            return None
        slices = (*cut, *(rows if rows.dim == 0 and spec in per_expert else None for spec in factors))
        return FromNvfp4(self.at, self.dtype, _cut(self.taken, slices)), slices

    def inverse(self) -> Restore:
        """The source's own bytes."""
        return Restore(self.at, self, self.taken, self.infer(self.taken))


@dataclass(frozen=True, slots=True)
class FromMxfp8:
    """Slots `at` on: weight and scale, of `taken` specs, to one tensor of `dtype`."""

    at: int
    dtype: str
    taken: Specs

    @property
    def arity(self) -> int:
        """Two."""
        return 2

    def infer(self, specs: Specs) -> Specs:
        """Give (experts, rows, columns); PlanError where the two do not belong together."""
        weight, scale = specs
        shape = weight.shape
        _check("weight", weight, ("F8_E4M3", "U8"), len(shape) == _DIMS and shape[-1] % _MXFP8_BLOCK == 0)
        _check("scale", scale, ("F8_E8M0", "U8"), scale.shape == (*shape[:-1], shape[-1] // _MXFP8_BLOCK))
        return (TensorSpec(self.dtype, shape),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute in F32, one expert at a time, and round once."""
        made = [
            _rounded(e4m3_values(codes).reshape(*powers.shape, _MXFP8_BLOCK) * powers[..., None], self.dtype)
            for codes, powers in zip(arrays[0], map(e8m0_values, arrays[1]), strict=True)
        ]
        return (_stacked(made, self.infer(self.taken)[0]),)

    def part(self, rows: Slice) -> tuple[FromMxfp8, tuple[Slice | None, ...]] | None:
        """Make some experts, rows, or columns in whole blocks."""
        slices = _of_codes(rows, 1, _MXFP8_BLOCK)
        return None if slices is None else (FromMxfp8(self.at, self.dtype, _cut(self.taken, slices)), slices)

    def inverse(self) -> Restore:
        """The source's own bytes."""
        return Restore(self.at, self, self.taken, self.infer(self.taken))


def _of_codes(rows: Slice, packed: int, block: int) -> tuple[Slice, Slice] | None:
    """Give the rows of weight, `packed` codes an element, and scale; None where a block would be torn."""
    if rows.dim != _DIMS - 1:
        return rows, rows
    scale, weight = rows.in_blocks(block), rows.in_blocks(packed)
    return None if scale is None or weight is None else (weight, scale)


def _cut(specs: Specs, slices: tuple[Slice | None, ...]) -> Specs:
    return tuple(spec if rows is None else rows.of_spec(spec) for spec, rows in zip(specs, slices, strict=True))


def _check(role: str, spec: TensorSpec, dtypes: tuple[str, ...], fits: bool) -> None:
    if spec.dtype not in dtypes or not fits:
        raise PlanError(
            f"the {role} of quantized experts is {spec}",
            expected=f"{' or '.join(dtypes)}, of a shape that goes with the weight",
            field="operations",
        )


def _rounded(values: mx.array, dtype: str) -> mx.array:
    import mlx.core as mx

    made = values.astype(getattr(mx, DTYPES[dtype].mlx or ""))
    # Else MLX would hold the F32 values of all experts at once.
    mx.eval(made)
    return made


def _stacked(made: list[mx.array], spec: TensorSpec) -> mx.array:
    import mlx.core as mx

    if not made:
        return mx.zeros(spec.shape, getattr(mx, DTYPES[spec.dtype or ""].mlx or ""))
    return mx.stack(made).reshape(spec.shape)
