"""The form of a coding: an immutable value that knows the tensors of one quantized matrix and what they mean.

A third party's has the same form. What is exact is said by the values: `Native` codings have a twin in MLX that holds
the same numbers, all others are decoded, to floats or to be coded anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from weightloom.engine.errors import PlanError
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

Arrays = tuple["mx.array", ...]


@runtime_checkable
class Coding(Protocol):
    """A matrix (..., rows, columns), or a stack of them, as several tensors in a fixed order."""

    @property
    def row_step(self) -> int:
        """Rows may be decoded apart from others at multiples of this."""
        ...

    def shape(self, specs: Specs) -> Shape:
        """Give the shape of the matrix; PlanError, saying which, where the tensors do not belong together."""
        ...

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """Give the tensors of rows [start, stop) of one matrix; `start` is a multiple of `row_step`."""
        ...

    def values(self, arrays: Arrays) -> mx.array:
        """Decode one matrix to F32; PlanError for a scale that is no number."""
        ...


@runtime_checkable
class Native(Coding, Protocol):
    """A coding whose numbers MLX holds as they are: codes as words of 32 bits, scales, and what else there is.

    `exact`: the stored tensors follow from MLX's, whatever these hold; else a save takes the source's own bytes.
    """

    @property
    def exact(self) -> bool:
        """Whether there is a way back for any tensors."""
        ...

    def kept(self, specs: Specs) -> Specs:
        """Give the specs of MLX's tensors; raises as `shape` does."""
        ...

    def keep(self, arrays: Arrays) -> Arrays:
        """Give MLX's tensors, of the same numbers; raises as `values` does."""
        ...

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """Give the stored tensors, of these specs; for an exact coding alone."""
        ...


def has_twin(coding: Native, specs: Specs) -> bool:
    """Say whether MLX has the numbers of these tensors: not in groups of another size, say."""
    try:
        coding.kept(specs)
    except PlanError:
        return False
    return True
