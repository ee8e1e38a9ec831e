"""The value step that adds a constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from weightloom.engine.errors import PlanError
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

_FLOATS = ("F32", "BF16", "F16")


@dataclass(frozen=True, slots=True)
class Shift:
    """Slot `at`, of spec `taken`, plus `value` in its own dtype."""

    elementwise: ClassVar[bool] = True

    at: int
    value: float
    taken: Specs
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec; PlanError for what is no float."""
        if specs[0].dtype not in _FLOATS:
            raise PlanError(f"Add on {specs[0]}", expected=f"a tensor of {', '.join(_FLOATS)}", field="operations")
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Add, and round once."""
        return (arrays[0] + self.value,)

    def inverse(self) -> Restore:
        """The source's own bytes; from other values, the difference."""
        return Restore(self.at, self, self.taken, self.taken, back=Shift(self.at, -self.value, self.taken))
