"""Lengths that a changed weight's rows or columns are brought to: DoRA, arXiv 2402.09353."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.views.row_blocks import RowBlock

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """Floats: (..., rows) with axis -1, along which a row lies, or (..., columns) with axis -2."""

    values: mx.array
    axis: int

    def of_rows(self, block: RowBlock) -> Lengths | None:
        """Give those of some rows; None where columns are meant, whose lengths all rows make."""
        return Lengths(block.of_vector(self.values), self.axis) if self.axis == -1 else None

    def gain(self, changed: mx.array) -> mx.array:
        """Give what brings a weight (..., rows, columns), float32, to these lengths: (..., rows, 1), (..., 1, columns).

        It is 1 where all is zero: nothing to which a length could be given.
        """
        import mlx.core as mx

        found = mx.linalg.norm(changed, axis=self.axis, keepdims=True)
        wanted = mx.expand_dims(self.values.astype(mx.float32), self.axis)
        return mx.where(found == 0, 1.0, wanted / found)
