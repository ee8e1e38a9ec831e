"""NVFP4: codes of 4 bits, a scale in F8_E4M3 for 16 of a row, and one more for the whole weight.

Source: the element type is E2M1 of OCP Microscaling Formats (MX) 1.0, two codes a byte, the low nibble first. ModelOpt
writes the second scale as a factor, compressed-tensors as a divisor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.codings.block_codes import e4m3_values, nvfp4_values
from weightloom.engine.codings.checks import SCALES, check_e4m3, check_matrix, check_numbers, check_part
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

GROUP = 16


@dataclass(frozen=True, slots=True)
class Nvfp4:
    """Bytes (..., rows, columns / 2), scales (..., rows, columns / 16), and a scale for each matrix.

    `divides`: a number is divided by the last one, else multiplied. MLX's tensors are words, scales, and a factor for
    each row (..., rows, 1): so weights with different factors can be stacked and joined, and stay exact.
    """

    divides: bool
    row_step: int = 1
    exact: bool = False

    def shape(self, specs: Specs) -> Shape:
        """Give the shape of the codes."""
        codes, scales, whole = specs
        check_part("codes", codes, ("U8",))
        check_matrix("codes", codes)
        shape = (*codes.shape[:-1], 2 * codes.shape[-1])
        if shape[-1] % GROUP:
            raise PlanError(f"codes of {codes}: rows of {shape[-1]}", expected=f"a multiple of {GROUP}")
        check_part("scales", scales, ("F8_E4M3",), (*shape[:-1], shape[-1] // GROUP))
        check_part("whole scale", whole, SCALES)
        if prod(whole.shape) != prod(shape[:-2]):
            raise PlanError(f"the whole scale of a weight is {whole}", expected=f"one a matrix: {list(shape[:-2])}")
        return shape

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """Cut codes and scales."""
        codes, scales, whole = arrays
        return codes[start:stop], scales[start:stop], whole

    def values(self, arrays: Arrays) -> mx.array:
        """Give code times scale times the whole weight's."""
        codes, scales, whole = arrays
        found = nvfp4_values(codes) * e4m3_values(check_e4m3(scales))[..., None] * self._factors(whole)
        return found.reshape(codes.shape[0], -1)

    def kept(self, specs: Specs) -> Specs:
        """Give words, scales and factors of rows."""
        shape = self.shape(specs)
        return (
            TensorSpec("U32", (*shape[:-1], shape[-1] // 8)),
            TensorSpec("U8", specs[1].shape),
            TensorSpec("F32", (*shape[:-1], 1)),
        )

    def keep(self, arrays: Arrays) -> Arrays:
        """Take the bytes as words, in their order, and write the factor for each row."""
        import mlx.core as mx

        codes, scales, whole = arrays
        factors = self._factors(whole).reshape(*codes.shape[:-2], 1, 1)
        rows = mx.contiguous(mx.broadcast_to(factors, (*codes.shape[:-1], 1)))
        return codes.view(mx.uint32), check_e4m3(scales), rows

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: rows may have factors of their own."""
        raise PlanError("factors of rows", expected="the source's own bytes")

    def _factors(self, whole: mx.array) -> mx.array:
        import mlx.core as mx

        found = whole.astype(mx.float32).reshape(-1)
        return check_numbers(1.0 / found if self.divides else found)
