"""FP8: codes of 8 bits, and a scale for each block, row or tensor, to be multiplied.

Source: OCP 8-bit Floating Point 1.0 for E4M3 and E5M2; the block form as DeepSeek-V3 published it
(`weight_scale_inv` is a factor, whatever its name says).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.codings.block_codes import e4m3_values, e5m2_values, e8m0_values
from weightloom.engine.codings.checks import SCALES, check_matrix, check_numbers, check_part, check_wide
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.errors import PlanError
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

CODES = "F8_E4M3"
WIDE_CODES = "F8_E5M2"
KINDS = (CODES, WIDE_CODES)
_POWERS = "F8_E8M0"


@dataclass(frozen=True, slots=True)
class Fp8Blocks:
    """Codes (..., rows, columns) and scales, one for each block of `block` rows and columns.

    The last blocks may be partial. `rows` or `columns` None: a block has all of them. Scales are floats, or powers of
    two (F8_E8M0) if `powers`; dims of one may be lacking. `codes` is
    the dtype of the codes, one of KINDS.
    """

    block: tuple[int | None, int | None]
    powers: bool = False
    codes: str = CODES

    @property
    def row_step(self) -> int:
        """The rows of a block; all rows may be apart where a block has them all."""
        return self.block[0] or 1

    def shape(self, specs: Specs) -> Shape:
        """Give the shape of the codes."""
        codes, scales = specs
        check_part("codes", codes, (self.codes,))
        check_matrix("codes", codes)
        check_part("scales", scales, (_POWERS,) if self.powers else SCALES)
        wanted = self._grid(codes.shape)
        if prod(scales.shape) != prod(wanted) or _long(scales.shape) != _long(wanted):
            rows, columns = self._sizes(codes.shape)
            raise PlanError(
                f"scales of {scales} for codes of {codes} in blocks of {rows} x {columns}",
                expected=f"a scale for each block: {list(wanted)}",
                hint="correct the size of a block in quantization_config",
                field="weight_block_size",
            )
        return codes.shape

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """Cut codes, and the scales that their rows lie in."""
        codes, scales = arrays
        grid = scales.reshape(self._grid(tuple(codes.shape)))
        size = self.block[0]
        return codes[start:stop], grid if size is None else grid[start // size : -(-stop // size)]

    def values(self, arrays: Arrays) -> mx.array:
        """Give code times scale."""
        import mlx.core as mx

        codes, scales = arrays
        factors = e8m0_values(scales) if self.powers else scales.astype(mx.float32)
        grid = check_numbers(factors).reshape(self._grid(tuple(codes.shape)))
        for axis, size in zip((0, 1), self.block, strict=True):
            if size is not None:
                grid = mx.repeat(grid, size, axis=axis)
        rows, columns = codes.shape
        return self._numbers(codes) * grid[:rows, :columns]

    def _numbers(self, codes: mx.array) -> mx.array:
        if self.codes == CODES:
            return e4m3_values(codes)
        return check_wide(e5m2_values(codes))

    def _grid(self, shape: Shape) -> Shape:
        sizes = zip(shape[-2:], self._sizes(shape), strict=True)
        return (*shape[:-2], *(-(-total // size) for total, size in sizes))

    def _sizes(self, shape: Shape) -> tuple[int, int]:
        rows, columns = self.block
        return rows or shape[-2], columns or shape[-1]


def _long(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)
