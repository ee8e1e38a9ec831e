"""The operation that puts a point between two tensors in the place of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.surgery.blending import Lerped, Slerped
from weightloom.engine.surgery.donor import Donor
from weightloom.engine.surgery.fitting import donated
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import FLOATS, Edit, Operation


@dataclass(frozen=True)
class Interpolate(Operation):
    """Take the point at `ratio` (0 is the first, 1 the second) between two donors' tensors of the same name.

    Without a first donor it is between the tensor itself and the second's. `step` is Lerped or Slerped.
    """

    op: ClassVar[str] = "interpolate"

    first: Donor | None
    second: Donor
    ratio: float
    step: type[Lerped] = Slerped

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step a tensor; raises PlanError for codes and integers, and for what a donor lacks."""
        found = self.matched(names)
        self.need_floats(names, found)
        keys = {name: name for name in found}
        ones = {} if self.first is None else donated(self, names, keys, self.first, FLOATS)
        others = donated(self, names, keys, self.second, FLOATS)
        return tuple(
            Edit(name, self.step(0, ones.get(name), other, self.ratio, self.title)) for name, other in others.items()
        )
