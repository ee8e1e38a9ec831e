"""AssertDims: tensors as they are, if they have the dims that a chain of ops was written for."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.chain import Chain
from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import ConversionOp


@dataclass(frozen=True, slots=True)
class AssertDims(ConversionOp):
    """Let tensors with `count` dims through, and refuse others by PlanError."""

    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise RuleError(f"count is {self.count!r}", expected="a number of dims", field="count")

    def lower(self, chain: Chain) -> None:
        """No move."""
        for part in chain.parts:
            for spec in part.specs:
                if len(spec.shape) != self.count:
                    raise PlanError(
                        f"{part.label}: a tensor of {list(spec.shape)}",
                        expected=f"a tensor with {self.count} dims",
                        field="operations",
                    )
        targets = chain.context.targets
        if len(chain.parts) == len(targets):
            chain.relabel([target.label for target in targets])

    def inverse(self) -> AssertDims:
        """The same: nothing was changed."""
        return self
