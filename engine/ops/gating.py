"""A gate on a residual stream, and the two weights that it stands for: ResidualGate, ResidualWeights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import ConversionOp
from weightloom.engine.ops.chain import Chain
from weightloom.engine.steps.gating_step import FLOATS, Gate, GateToWeights, WeightsToGate


@dataclass(frozen=True, slots=True)
class ResidualGate(ConversionOp):
    """Two tensors, alpha and beta in F32, as the one gate that they were computed of.

    beta = sigmoid(gate / temperature), the weight of the branch; of the stream it is alpha = sqrt(max(sigmoid(-gate /
    temperature) * (1 + beta), floor)). The gate is of `dtype`, BF16, F16 or F32. It rounds, so the way back is the
    source's own bytes while the parameter is as it was loaded; from another gate its weights are computed.
    """

    needs_real_shapes: ClassVar[bool] = True

    temperature: float
    floor: float
    dtype: str = "BF16"

    def __post_init__(self) -> None:
        _check(self.temperature, self.dtype)

    def lower(self, chain: Chain) -> None:
        """One value step on both."""
        if [len(part.specs) for part in chain.parts] != [1, 1] or len(chain.context.targets) != 1:
            raise PlanError("ResidualGate: not two tensors for one", expected="alpha, beta and a gate", field="ops")
        chain.gather_parts(chain.context.targets[0].label)
        how = Gate(self.temperature, self.floor, self.dtype)
        chain.value(WeightsToGate(chain.slot(0, 0), how, chain.parts[0].specs), 0, 0, 2)

    def inverse(self) -> ResidualWeights:
        """Compute the weights of a gate that was never loaded."""
        return ResidualWeights(self.temperature, self.floor, self.dtype)


@dataclass(frozen=True, slots=True)
class ResidualWeights(ConversionOp):
    """One gate as alpha and beta in F32: as ResidualGate, the other way."""

    needs_real_shapes: ClassVar[bool] = True

    temperature: float
    floor: float
    dtype: str = "BF16"

    def __post_init__(self) -> None:
        _check(self.temperature, self.dtype)

    def lower(self, chain: Chain) -> None:
        """One value step, that makes two parts."""
        spec, labels = chain.only("ResidualWeights"), [target.label for target in chain.context.targets]
        if len(labels) != 2:
            raise PlanError("ResidualWeights: not two targets", expected="alpha and beta", field="ops")
        how = Gate(self.temperature, self.floor, self.dtype)
        chain.value(GateToWeights(chain.slot(0, 0), how, (spec,)), 0, 0)
        chain.spread_part(labels)

    def inverse(self) -> ResidualGate:
        """Compute the gate of weights that were never loaded."""
        return ResidualGate(self.temperature, self.floor, self.dtype)


def _check(temperature: float, dtype: str) -> None:
    if temperature <= 0:
        raise RuleError(f"temperature {temperature!r}", expected="a number above zero", field="temperature")
    if dtype not in FLOATS:
        raise RuleError(f"dtype {dtype!r}", expected=", ".join(FLOATS), field="dtype")
