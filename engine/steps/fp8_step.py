"""The value step from FP8 codes with a scale for each block to BF16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.codings.block_codes import e4m3_values
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.rank_slice import Slice

if TYPE_CHECKING:
    import mlx.core as mx

CODES = "F8_E4M3"
_SCALES = ("F32", "BF16", "F16")


@dataclass(frozen=True, slots=True)
class FromFp8Blocks:
    """Slots `at` on: codes (..., rows, columns) and scales (..., blocks of rows, blocks of columns), to BF16.

    A block has `block` rows and columns, fewer at the lower and right edge; a value is a code times its block's scale.
    Of the first block down and across, the first `skipped` rows and columns may be lacking.
    """

    at: int
    block: tuple[int, int]
    taken: Specs
    skipped: tuple[int, int] = (0, 0)

    @property
    def arity(self) -> int:
        """Two."""
        return 2

    def infer(self, specs: Specs) -> Specs:
        """Give BF16 of the codes' shape; PlanError where the two do not belong together."""
        codes, scales = specs
        ends = (size + lacking for size, lacking in zip(codes.shape[-2:], self.skipped, strict=False))
        blocks = tuple(-(-end // each) for end, each in zip(ends, self.block, strict=False))
        if codes.dtype != CODES or len(codes.shape) < len(self.block) or scales.dtype not in _SCALES:
            raise PlanError(f"codes of {codes} and scales of {scales}", expected=f"{CODES} in blocks, and float scales")
        if scales.shape != (*codes.shape[:-2], *blocks):
            raise PlanError(
                f"scales of {scales} for codes of {codes} in blocks of {' x '.join(map(str, self.block))}",
                expected=f"a scale for each block: {[*codes.shape[:-2], *blocks]}",
                field="weight_block_size",
            )
        return (TensorSpec("BF16", codes.shape),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute in F32 and round once."""
        import mlx.core as mx

        codes, scales = arrays
        for axis, size in zip((-2, -1), self.block, strict=True):
            scales = mx.repeat(scales, size, axis=axis)
        top, left = self.skipped
        scales = scales[..., top : top + codes.shape[-2], left : left + codes.shape[-1]]
        return ((e4m3_values(codes) * scales.astype(mx.float32)).astype(mx.bfloat16),)

    def part(self, rows: Slice) -> tuple[FromFp8Blocks, tuple[Slice | None, ...]] | None:
        """Make some rows or columns from the blocks that they lie in, the first of which a cut may tear."""
        axis = rows.dim - len(self.taken[0].shape) + 2
        scales, skipped = rows, list(self.skipped)
        if axis >= 0:
            size, lacking = self.block[axis], self.skipped[axis]
            whole = None if lacking else rows.in_blocks(size)
            first, *others = rows.ranges
            if whole is None and others:
                return None
            start, stop = (row + lacking for row in first)
            scales = whole or Slice(rows.dim, ((start // size, -(-stop // size)),))
            skipped[axis] = start % size
        taken = (rows.of_spec(self.taken[0]), scales.of_spec(self.taken[1]))
        return FromFp8Blocks(self.at, self.block, taken, (skipped[0], skipped[1])), (rows, scales)

    def inverse(self) -> Restore:
        """The source's own bytes."""
        return Restore(self.at, self, self.taken, self.infer(self.taken))
