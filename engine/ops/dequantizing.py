"""Experts that are stored in a block format, as floats: DequantizeExperts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import ConversionOp, relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.engine.steps.block_steps import FromMxfp8, FromNvfp4

_FLOATS = ("BF16", "F16", "F32")


@dataclass(frozen=True, slots=True)
class DequantizeExperts(ConversionOp):
    """Stacked experts (E, rows, columns) in NVFP4 or MXFP8 to floats, by what the sources are.

    * Four tensors, NVFP4: weight (two E2M1 codes a byte, the even column in the low nibble), scale (F8_E4M3, one
      for 16 columns), amax (one an expert), denominator (one, or one an expert): value = code * scale * amax /
      denominator.
    * Two tensors, MXFP8: weight (F8_E4M3), scale (E8M0, a power of two for 32 columns).
    * One tensor: it is in floats already, and stays as it is.

    `dtype`: BF16, F16 or F32; by default the parameter's, else BF16. Computed in F32 and rounded once. A save writes
    the source's own bytes back as long as the parameter is as it was loaded. A model that was never loaded is written
    in floats.
    """

    needs_real_shapes: ClassVar[bool] = True

    dtype: str | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and self.dtype not in _FLOATS:
            raise RuleError(f"dtype {self.dtype!r}", expected=", ".join(_FLOATS), field="dtype")

    def lower(self, chain: Chain) -> None:
        """One value step on all tensors, or none."""
        counts = [len(part.specs) for part in chain.parts]
        targets = chain.context.targets
        if set(counts) != {1} or len(counts) not in (1, 2, 4) or len(targets) != 1:
            raise PlanError(
                f"DequantizeExperts: {sum(counts)} tensors of {len(counts)} patterns for {len(targets)} targets",
                expected="a weight; a weight and a scale; or a weight, a scale, an amax and a denominator",
                field="operations",
            )
        chain.gather_parts(targets[0].label)
        dtype = self.dtype or self._of_parameter(chain)
        if len(counts) == 4:
            chain.value(FromNvfp4(chain.slot(0, 0), dtype, chain.parts[0].specs), 0, 0, 4)
        elif len(counts) == 2:
            chain.value(FromMxfp8(chain.slot(0, 0), dtype, chain.parts[0].specs), 0, 0, 2)

    def inverse(self) -> FloatExperts:
        """Leave them in floats: codes cannot be computed back."""
        return FloatExperts(self.dtype)

    def _of_parameter(self, chain: Chain) -> str:
        spec = chain.context.targets[0].spec
        return spec.dtype if spec is not None and spec.dtype in _FLOATS else "BF16"


@dataclass(frozen=True, slots=True)
class FloatExperts(ConversionOp):
    """How experts are written that were never loaded: in floats, one tensor. Made by DequantizeExperts alone."""

    needs_real_shapes: ClassVar[bool] = True

    dtype: str | None = None

    def lower(self, chain: Chain) -> None:
        """Nothing but to check that it is one tensor."""
        chain.only("FloatExperts")
        relabel_single(chain)

    def inverse(self) -> DequantizeExperts:
        """Dequantize."""
        return DequantizeExperts(self.dtype)
