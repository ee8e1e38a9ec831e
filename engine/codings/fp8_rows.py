"""FP8 with a scale for each row, or for the whole weight: MLX has the same numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.codings.block_codes import e8m0_values
from weightloom.engine.codings.checks import check_numbers
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.codings.fp8_blocks import Fp8Blocks
from weightloom.engine.codings.mxfp8_codes import GROUP
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

_ONE = 127


@dataclass(frozen=True, slots=True)
class Fp8Rows:
    """Codes (..., rows, columns) and a scale for each row, or one a matrix if `whole`; `powers` as in Fp8Blocks.

    MLX's tensors are MXFP8 whose powers are all one, and a factor for each row (..., rows, 1).
    """

    whole: bool
    powers: bool = False
    row_step: int = 1
    exact: bool = False

    @property
    def blocks(self) -> Fp8Blocks:
        """The same as blocks."""
        return Fp8Blocks((None if self.whole else 1, None), self.powers)

    def shape(self, specs: Specs) -> Shape:
        """Give the shape of the codes."""
        return self.blocks.shape(specs)

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """Cut codes and scales."""
        return self.blocks.rows(arrays, start, stop)

    def values(self, arrays: Arrays) -> mx.array:
        """Give code times scale."""
        return self.blocks.values(arrays)

    def kept(self, specs: Specs) -> Specs:
        """Give words, powers and factors; PlanError for rows that do not divide into groups."""
        shape = self.shape(specs)
        if shape[-1] % GROUP:
            raise PlanError(f"rows of {shape[-1]} numbers", expected=f"a multiple of {GROUP}, for MXFP8")
        return (
            TensorSpec("U32", (*shape[:-1], shape[-1] // 4)),
            TensorSpec("U8", (*shape[:-1], shape[-1] // GROUP)),
            TensorSpec("F32", (*shape[:-1], 1)),
        )

    def keep(self, arrays: Arrays) -> Arrays:
        """Take the codes as words, in their order."""
        import mlx.core as mx

        codes, scales = arrays
        *ahead, rows, columns = codes.shape
        factors = check_numbers(e8m0_values(scales) if self.powers else scales.astype(mx.float32))
        factors = factors.reshape(*ahead, factors.size // max(prod(ahead), 1), 1)
        powers = mx.full((*ahead, rows, columns // GROUP), _ONE, mx.uint8)
        return codes.view(mx.uint32), powers, mx.contiguous(mx.broadcast_to(factors, (*ahead, rows, 1)))

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: rows may have factors of their own."""
        raise PlanError("factors of rows", expected="the source's own bytes")
