"""Restore: the way back from a step that changes values and has no exact inverse, by keeping its inputs.

While the results are what the step made, bit for bit, its inputs are those of the source, so a save writes the
source's own bytes. The step itself is never run; some know another that computes inputs from other results, rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.views.program import ValueStep


@dataclass(frozen=True, slots=True)
class Restore:
    """From the results of `step` back to its inputs, of `kept` specs; `made` are the specs of the results.

    `back` computes inputs that lead to about these results, where nothing was kept that leads to them exactly.
    """

    at: int
    step: ValueStep
    kept: Specs
    made: Specs
    back: ValueStep | None = None

    @property
    def arity(self) -> int:
        """As many slots as the step gave."""
        return len(self.made)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs of the step's inputs."""
        if specs != self.made:
            raise PlanError(
                f"{type(self.step).__name__} is to be undone on {', '.join(map(str, specs))}",
                expected=", ".join(map(str, self.made)),
            )
        return self.kept

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute about what the inputs were; raises NotInvertible where there is no such step."""
        if self.back is not None:
            return self.back.apply(arrays)
        raise NotInvertible(
            f"{type(self.step).__name__} cannot be computed back",
            expected="a save of what was loaded, which writes the source's own bytes",
            rule=type(self.step).__name__,
        )

    def inverse(self) -> ValueStep:
        """Give the step again."""
        return cast("ValueStep", replace(cast("Any", self.step), at=self.at))
