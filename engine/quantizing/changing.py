"""Value steps on packed matrices whose values change: unpacked, changed as float32, and packed again or left so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import NotInvertible
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.refitting import floats_of, packed, refitted
from weightloom.engine.quantizing.steps import Unpack
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import ValueStep

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Repacked:
    """Slots `at` on, the parts of a matrix packed as `how`: changed by steps of one slot, and packed as they were."""

    at: int
    how: Quantization
    changes: tuple[ValueStep, ...]

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.how.parts)

    def infer(self, specs: Specs) -> Specs:
        """Give the same specs; PlanError for what is not packed like this."""
        as_floats(self.how, specs)
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, pack."""
        return refitted(arrays, changed(floats_of(arrays, self.how), self.changes), self.how)

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: what is packed is rounded."""
        raise rounded()


@dataclass(frozen=True, slots=True)
class PackedWider:
    """Slots `at` on, the parts of a matrix packed as `how`: changed by steps of one slot, and packed as `wider`."""

    at: int
    how: Quantization
    changes: tuple[ValueStep, ...]
    wider: Quantization

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.how.parts)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs of the wider form; PlanError for what is not packed like this."""
        return self.wider.packed(as_floats(self.how, specs)[0])

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, pack."""
        return packed(changed(floats_of(arrays, self.how), self.changes), self.wider, arrays[1].dtype)

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: what is packed is rounded."""
        raise rounded()


@dataclass(frozen=True, slots=True)
class LeftAsFloats:
    """Slots `at` on, the parts of a matrix packed as `how`: changed by steps of one slot, and rounded to a dtype.

    It is the one that unpacking gives: that of the scales in affine mode, else BF16.
    """

    at: int
    how: Quantization
    changes: tuple[ValueStep, ...]
    dtype: str

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.how.parts)

    def infer(self, specs: Specs) -> Specs:
        """Give one spec of floats; PlanError for what is not packed like this."""
        return as_floats(self.how, specs)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, round."""
        return (rounded_to(changed(floats_of(arrays, self.how), self.changes), self.dtype),)

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: the sum is rounded."""
        raise rounded()


Changing = Repacked | PackedWider | LeftAsFloats


def as_floats(how: Quantization, specs: Specs) -> Specs:
    """Give the spec of what parts stand for; PlanError for parts that are not packed like this."""
    return Unpack(0, how, specs).infer(specs)


def changed(values: mx.array, steps: Sequence[ValueStep]) -> mx.array:
    """Values of any shape, float32 -> what steps of one slot make of them, one after another."""
    for step in steps:
        (values,) = step.apply((values,))
    return values


def rounded_to(values: mx.array, dtype: str) -> mx.array:
    """Round to a float dtype, as safetensors spells it."""
    import mlx.core as mx

    return values.astype(getattr(mx, DTYPES[dtype].mlx or ""))


def share_lost(before: mx.array, wanted: mx.array, got: mx.array) -> float:
    """Give how far `got` is from what is wanted, as a share of how far that is from `before`; 0 where nothing changes.

    All are float32 of one shape; distances are Euclidean.
    """
    import mlx.core as mx

    whole, left = (float(mx.linalg.norm(apart)) for apart in (wanted - before, got - wanted))
    return left / whole if whole else 0.0


def rounded() -> NotInvertible:
    """Give the error of a step whose result is rounded."""
    return NotInvertible(
        "packed tensors were changed, and are rounded",
        expected="a plan without adapters, which has a way back",
        hint="keep the source files",
    )
