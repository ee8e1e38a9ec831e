"""The value steps that multiply by factors and divide by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

_FLOATS = ("F32", "BF16", "F16")


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of a tensor, or of runs of rows along `dim`: one for all, or as many as there are `sizes`.

    Several are multiplied with each other first, from left to right, in the dtype of the tensor.
    """

    values: tuple[float | tuple[float, ...], ...]
    dim: int
    sizes: tuple[int, ...]

    @property
    def are_one(self) -> bool:
        """Say whether they change nothing."""
        return all(each == 1 for each in self._numbers())

    def array(self, like: mx.array) -> mx.array | float:
        """Give them in a form that goes with a tensor."""
        first, *others = (self._spread(value, like) for value in self.values)
        product = first
        for other in others:
            product = product * other
        return product

    def check(self, specs: Specs) -> None:
        """Raise PlanError for factors that cannot be undone, or that do not go with the tensor."""
        shape = specs[0].shape
        if specs[0].dtype not in _FLOATS or (self.sizes and sum(self.sizes) != shape[self.dim]):
            raise PlanError(
                f"factors on {specs[0]}",
                expected=f"a tensor of {' or '.join(_FLOATS)}" + (f", {sum(self.sizes)} rows" if self.sizes else ""),
                field="operations",
            )
        flat = self._numbers()
        if not all(isfinite(each) and each != 0 for each in flat):
            raise PlanError(f"a factor among {flat}", expected="numbers other than zero", field="by")

    def _numbers(self) -> list[float]:
        return [each for value in self.values for each in (value if isinstance(value, Sequence) else (value,))]

    def _spread(self, value: float | tuple[float, ...], like: mx.array) -> mx.array | float:
        import mlx.core as mx

        if not isinstance(value, tuple):
            return value
        rows = mx.concatenate([mx.full((size,), each) for size, each in zip(self.sizes, value, strict=True)])
        return rows.astype(like.dtype).reshape(-1, *[1] * (like.ndim - 1 - self.dim))


@dataclass(frozen=True, slots=True)
class _ByFactors:
    """Slot `at`, of spec `taken`, with factors in or out."""

    at: int
    factors: Factors
    taken: Specs
    arity: int = 1

    @property
    def elementwise(self) -> bool:
        """Whether one factor goes for all elements."""
        return not self.factors.sizes

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec; PlanError where factors and tensor do not go together."""
        self.factors.check(specs)
        return specs


@dataclass(frozen=True, slots=True)
class Multiplied(_ByFactors):
    """Slot `at`, of spec `taken`, times factors, rounded once."""

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Multiply."""
        return (arrays[0] * self.factors.array(arrays[0]),)

    def inverse(self) -> Restore:
        """The source's own bytes; from other values, the quotient."""
        return Restore(self.at, self, self.taken, self.taken, back=Divided(self.at, self.factors, self.taken))


@dataclass(frozen=True, slots=True)
class Divided(_ByFactors):
    """Slot `at`, of spec `taken`, divided by factors, rounded once."""

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Divide."""
        return (arrays[0] / self.factors.array(arrays[0]),)

    def inverse(self) -> Restore:
        """The source's own bytes; from other values, the product."""
        return Restore(self.at, self, self.taken, self.taken, back=Multiplied(self.at, self.factors, self.taken))
