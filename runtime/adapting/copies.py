"""Whole tensors of an adapter that are the base's own: PEFT writes embeddings beside their factors, changed or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weightloom.engine import Plan
from weightloom.engine.planning.composing.part import part_of
from weightloom.engine.planning.lifting import WHOLE
from weightloom.runtime.adapting.adapter_plan import AdapterPlan

if TYPE_CHECKING:
    import mlx.core as mx


def copies_of_base(found: AdapterPlan, arrays: Mapping[str, mx.array], base: Plan) -> tuple[str, ...]:
    """Name the parameters that an adapter has whole, beside factors, with the values that the base has."""
    changed = {change.parameter for change in found.changes}
    asked = [name for name in found.replaced if name in changed]
    return tuple(name for name in asked if _same(part_of(base, [name]).load()[name], arrays[f"{WHOLE}.{name}"]))


def _same(own: mx.array, other: mx.array) -> bool:
    import mlx.core as mx

    return own.shape == other.shape and bool(mx.array_equal(own, other.astype(own.dtype)))
