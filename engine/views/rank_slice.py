"""Slice: the rows of one dim that a rank holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.view import View

if TYPE_CHECKING:
    import mlx.core as mx

Rows = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows [start, stop) of dim `dim`: one range, or several that are laid one behind the other."""

    dim: int
    ranges: tuple[Rows, ...]

    def of_view(self, view: View) -> View:
        """Cut a view."""
        parts = [view.cut(self.dim, start, stop) for start, stop in self.ranges]
        return parts[0] if len(parts) == 1 else View.join(parts, self.dim)

    def of_spec(self, spec: TensorSpec) -> TensorSpec:
        """Give the spec of the part."""
        count = sum(stop - start for start, stop in self.ranges)
        return TensorSpec(spec.dtype, (*spec.shape[: self.dim], count, *spec.shape[self.dim + 1 :]))

    def in_blocks(self, size: int) -> Slice | None:
        """Give the same rows counted in blocks of `size`; None where a range begins or ends inside one."""
        if any(row % size for rows in self.ranges for row in rows):
            return None
        return Slice(self.dim, tuple((start // size, stop // size) for start, stop in self.ranges))

    def of_array(self, array: mx.array) -> mx.array:
        """Cut an array; the part has memory of its own."""
        import mlx.core as mx

        before = (slice(None),) * self.dim
        parts = [array[(*before, slice(start, stop))] for start, stop in self.ranges]
        return mx.contiguous(parts[0] if len(parts) == 1 else mx.concatenate(parts, self.dim))
