"""Packed tensors whose values change: unpacked, changed as floats, and packed again.

Each group keeps its scale and bias where the changed values come nearest on that grid, and gets a new one elsewhere: no
group is further from what is wanted than it was before, and one that does not change stays as it is, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.errors import NotInvertible
from weightloom.engine.steps.affine import Affine
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import ValueStep

if TYPE_CHECKING:
    import mlx.core as mx

Packed = tuple["mx.array", "mx.array", "mx.array"]
"""Words (..., W) uint32, scales and biases (..., G) of one float dtype."""


@dataclass(frozen=True, slots=True)
class Repacked:
    """Slots words, scales, biases: unpacked from `form`, changed by steps of one slot, and packed in the same form."""

    at: int
    form: Affine
    changes: tuple[ValueStep, ...]
    arity: int = 3

    def infer(self, specs: Specs) -> Specs:
        """Give the same specs; PlanError for what is not packed like this."""
        self.form.dense(*specs)
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, pack."""
        words, scales, biases = arrays
        wanted = changed(self.form.unpack(words, scales, biases), self.changes)
        return refitted(self.form, (words, scales, biases), wanted)

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: what is packed is rounded."""
        raise rounded()


@dataclass(frozen=True, slots=True)
class PackedWider:
    """Slots words, scales, biases: unpacked from `form`, changed by steps of one slot, and packed as `wider`."""

    at: int
    form: Affine
    changes: tuple[ValueStep, ...]
    wider: Affine
    arity: int = 3

    def infer(self, specs: Specs) -> Specs:
        """Give the specs of the wider form; PlanError for what is not packed like this."""
        return self.wider.packed(self.form.dense(*specs))

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, pack."""
        wanted = changed(self.form.unpack(*arrays), self.changes)
        return packed(self.wider, wanted, arrays[1].dtype)

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: what is packed is rounded."""
        raise rounded()


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Slots words, scales, biases: unpacked from `form`, changed by steps of one slot, rounded to the scales' dtype."""

    at: int
    form: Affine
    changes: tuple[ValueStep, ...]
    arity: int = 3

    def infer(self, specs: Specs) -> Specs:
        """Give one dense spec; PlanError for what is not packed like this."""
        return (self.form.dense(*specs),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, round."""
        wanted = changed(self.form.unpack(*arrays), self.changes)
        return (wanted.astype(arrays[1].dtype),)

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: the sum is rounded."""
        raise rounded()


def changed(values: mx.array, steps: Sequence[ValueStep]) -> mx.array:
    """Values of any shape, float32 -> what steps of one slot make of them, one after another."""
    for step in steps:
        (values,) = step.apply((values,))
    return values


def share_lost(before: mx.array, wanted: mx.array, got: mx.array) -> float:
    """Give how far `got` is from what is wanted, as a share of how far that is from `before`; 0 where nothing changes.

    All are float32 of one shape; distances are Euclidean.
    """
    import mlx.core as mx

    whole, left = (float(mx.linalg.norm(apart)) for apart in (wanted - before, got - wanted))
    return left / whole if whole else 0.0


def refitted(form: Affine, before: Packed, wanted: mx.array) -> Packed:
    """Pack `wanted` (..., columns) float32 in the form it had `before`, each group on its old grid or a new one."""
    import mlx.core as mx

    words, scales, biases = before
    # A group of one value alone has scale 0, and any code: it keeps its own.
    own = form.codes(words).reshape(*scales.shape, form.group_size)
    old = mx.where((scales == 0)[..., None], own, form.nearest(wanted, scales, biases))
    new_scales, new_biases = form.grid(wanted, scales.dtype)
    new = form.nearest(wanted, new_scales, new_biases)
    better = form.errors(wanted, new, new_scales, new_biases) < form.errors(wanted, old, scales, biases)
    codes = mx.where(better[..., None], new, old).reshape(wanted.shape)
    return form.words(codes), mx.where(better, new_scales, scales), mx.where(better, new_biases, biases)


def packed(form: Affine, wanted: mx.array, dtype: mx.Dtype) -> Packed:
    """Pack `wanted` (..., columns) float32 anew, with scales and biases of a dtype."""
    scales, biases = form.grid(wanted, dtype)
    return form.words(form.nearest(wanted, scales, biases).reshape(wanted.shape)), scales, biases


def rounded() -> NotInvertible:
    """Give the error of a step whose result is rounded."""
    return NotInvertible(
        "packed tensors were changed, and are rounded",
        expected="a plan without adapters, which has a way back",
        hint="keep the source files",
    )
