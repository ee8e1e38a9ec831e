"""The value step that reads the same bytes as another element type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Reinterpret:
    """Slot `at`, of dtype `old`, as dtype `new`: the last dim grows or shrinks with the width of an element."""

    at: int
    old: str
    new: str
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the new dtype and last dim; PlanError for another dtype, or bytes that make no whole elements."""
        (spec,) = specs
        bits, wanted = DTYPES[self.old].bits, DTYPES[self.new].bits
        if spec.dtype != self.old or not spec.shape or spec.shape[-1] * bits % wanted:
            raise PlanError(
                f"BitView to {self.new}: a tensor of {spec}",
                expected=f"{self.old}, with a last dim that makes whole elements of {self.new}",
                field="operations",
            )
        return (TensorSpec(self.new, (*spec.shape[:-1], spec.shape[-1] * bits // wanted)),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Read the bytes anew."""
        import mlx.core as mx

        return (arrays[0].view(getattr(mx, DTYPES[self.new].mlx or "")),)

    def inverse(self) -> Reinterpret:
        """Read them as before."""
        return Reinterpret(self.at, self.new, self.old)
