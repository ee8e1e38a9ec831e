"""A constant on top of every element: Add."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.errors import RuleError
from weightloom.engine.ops.base import ConversionOp, relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.engine.steps.adding_step import Shift


@dataclass(frozen=True, slots=True)
class Add(ConversionOp):
    """One float tensor plus `value`, in its own dtype, rounded to nearest.

    A norm that scales by one plus its weight is stored either way: with -1 on the form that has the one in it. The
    sum rounds, so the way back is the source's own bytes while the parameter is as it was loaded; from other values
    it is the difference, rounded.
    """

    value: float

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise RuleError(f"value {self.value!r}", expected="a number", field="value")

    def lower(self, chain: Chain) -> None:
        """One value step."""
        spec = chain.only("Add")
        chain.value(Shift(chain.slot(0, 0), float(self.value), (spec,)), 0, 0)
        relabel_single(chain)

    def inverse(self) -> Add:
        """Take it away again: how a tensor is written that was never loaded."""
        return Add(-self.value)
