"""The value steps between a gate and the two weights that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

FLOATS = ("F32", "BF16", "F16")


@dataclass(frozen=True, slots=True)
class Gate:
    """How a gate g mixes a branch into a stream: beta = sigmoid(g / temperature) of the branch, and of the stream
    alpha = sqrt(max(sigmoid(-g / temperature) * (1 + beta), floor)). `dtype` is the gate's; the weights are in F32.
    """

    temperature: float
    floor: float
    dtype: str

    def weights(self, gate: mx.array) -> tuple[mx.array, mx.array]:
        """Give alpha and beta."""
        import mlx.core as mx

        scaled = gate.astype(mx.float32) / self.temperature
        beta = mx.sigmoid(scaled)
        return mx.sqrt(mx.clip(mx.sigmoid(-scaled) * (1.0 + beta), self.floor, None)), beta

    def gate(self, beta: mx.array) -> mx.array:
        """Give a gate whose beta is about this one."""
        import mlx.core as mx

        found = self.temperature * (mx.log(beta) - mx.log1p(-beta))
        return found.astype(getattr(mx, DTYPES[self.dtype].mlx or ""))


@dataclass(frozen=True, slots=True)
class WeightsToGate:
    """Slots `at` on, alpha and beta of `taken` specs, to the gate."""

    at: int
    how: Gate
    taken: Specs
    arity: int = 2

    def infer(self, specs: Specs) -> Specs:
        """Give the gate's spec; PlanError where the two are not alike and in F32."""
        if len(set(specs)) != 1 or specs[0].dtype != "F32":
            raise PlanError(f"the weights of a gate are {', '.join(map(str, specs))}", expected="two alike, in F32")
        return (TensorSpec(self.how.dtype, specs[0].shape),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute it of beta."""
        return (self.how.gate(arrays[1]),)

    def inverse(self) -> Restore:
        """The source's own bytes; from another gate, its weights."""
        made = self.infer(self.taken)
        return Restore(self.at, self, self.taken, made, back=GateToWeights(self.at, self.how, made))


@dataclass(frozen=True, slots=True)
class GateToWeights:
    """Slot `at`, a gate of spec `taken`, to alpha and beta."""

    at: int
    how: Gate
    taken: Specs
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the two specs; PlanError where the gate is of another dtype."""
        if specs[0].dtype != self.how.dtype:
            raise PlanError(f"a gate of {specs[0]}", expected=f"one of {self.how.dtype}", field="dtype")
        return (TensorSpec("F32", specs[0].shape),) * 2

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute both in F32."""
        return self.how.weights(arrays[0])

    def inverse(self) -> Restore:
        """The source's own bytes; from other weights, their gate."""
        made = self.infer(self.taken)
        return Restore(self.at, self, self.taken, made, back=WeightsToGate(self.at, self.how, made))
