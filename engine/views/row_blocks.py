"""Some rows of a matrix, or of one matrix of a stack: what is computed with at once where the whole would not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from weightloom.engine.views.program import ValueStep

if TYPE_CHECKING:
    import mlx.core as mx

# Elements of a block.
AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows `start` to `stop` of matrix `number` of a stack, whose leading dims are counted as one."""

    number: int
    start: int
    stop: int

    def of(self, array: mx.array) -> mx.array:
        """(..., rows, k) -> (stop - start, k)."""
        return self.matrix(array)[self.start : self.stop]

    def matrix(self, array: mx.array) -> mx.array:
        """(..., rows, k) -> (rows, k), the matrix that the rows are of."""
        return array.reshape(-1, *array.shape[-2:])[self.number]

    def of_vector(self, array: mx.array) -> mx.array:
        """(..., rows) -> (stop - start,)."""
        return array.reshape(-1, array.shape[-1])[self.number, self.start : self.stop]


@runtime_checkable
class ByRows(Protocol):
    """A value step of one slot that may be done some rows at a time."""

    def of_rows(self, block: RowBlock) -> ValueStep | None:
        """Give the step for these rows alone; None where it needs the others too."""
        ...


def row_blocks(shape: tuple[int, ...]) -> Iterator[RowBlock]:
    """Cut a matrix, or a stack of them, of a shape (..., rows, columns) into blocks of some rows."""
    *stack, rows, columns = shape
    at_once = max(1, AT_ONCE // max(columns, 1))
    for number in range(prod(stack)):
        yield from (RowBlock(number, row, min(row + at_once, rows)) for row in range(0, rows, at_once))


def of_rows(steps: tuple[ValueStep, ...], block: RowBlock) -> tuple[ValueStep, ...] | None:
    """Give steps for some rows alone; None where one needs the others too."""
    found = [step.of_rows(block) if isinstance(step, ByRows) else None for step in steps]
    known = tuple(step for step in found if step is not None)
    return known if len(known) == len(found) else None
