"""The value step that leaves out a part of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.surgery.steps import irreversible
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """Of slot `at`, cut along `dim` into `count` equal blocks, those numbered in `keep`, in order."""

    at: int
    dim: int
    count: int
    keep: tuple[int, ...]
    what: str
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the shape with fewer blocks; PlanError where they are not equal."""
        shape = list(specs[0].shape)
        if not -len(shape) <= self.dim < len(shape) or shape[self.dim] % self.count:
            raise PlanError(f"{self.what} on {specs[0]}", expected=f"a multiple of {self.count} along {self.dim}")
        shape[self.dim] = shape[self.dim] // self.count * len(self.keep)
        return (TensorSpec(specs[0].dtype, tuple(shape)),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Take the blocks; their bits are kept."""
        import mlx.core as mx

        dim = self.dim % arrays[0].ndim
        shape = arrays[0].shape
        parted = arrays[0].reshape(*shape[:dim], self.count, shape[dim] // self.count, *shape[dim + 1 :])
        taken = mx.take(parted, mx.array(self.keep, mx.int32), axis=dim)
        return (taken.reshape(*shape[:dim], -1, *shape[dim + 1 :]),)

    def inverse(self) -> KeptBlocks:
        """Raise NotInvertible: what was left out is gone."""
        raise irreversible(self.what)
