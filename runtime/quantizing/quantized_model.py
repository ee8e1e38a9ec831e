"""A model that is cast, quantized or unpacked on its way into memory: its plan, and the module that fits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weightloom.engine.plan import Plan
from weightloom.engine.quantizing.checked import checked
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.plugins.modules.quantized import quantize
from weightloom.runtime.preparing.casting import Casting, casting
from weightloom.runtime.preparing.prepare import Prepared, built
from weightloom.runtime.preparing.quantized_set import QuantizedSet
from weightloom.runtime.quantizing.quantized_plan import Packables, matrix_of, unpacked_first
from weightloom.runtime.quantizing.wish import Quantizing

if TYPE_CHECKING:
    import mlx.nn as nn


def unpacked(found: Prepared, quantizing: Quantizing | None) -> Prepared:
    """Give the model with what its files hold packed as floats, where that is asked for; raises as `unpacked_first`."""
    if quantizing is None or not found.quantized.modules:
        return found
    plan = unpacked_first(found.plan, found.quantized.modules, quantizing)
    plain = built(found.architecture, found.config, plan.params.keys())
    return _with(found, plain, plan, {}, found.quantized.notes)


def as_asked(found: Prepared, dtype: str | None, quantizing: Quantizing | None) -> tuple[Prepared, Casting]:
    """Give a model, `unpacked` where that is asked for, cast and quantized, and what was cast.

    `dtype` is as `casting` takes it. Raises UsageError for a recipe that packs no module.
    """
    cast = casting(dtype, found.plan, found.architecture)
    if quantizing is None:
        return replace(found, plan=cast.of(found.plan)), cast
    known = Packables(quantizing, found)
    plan = known.cast(found.plan, cast)
    done = known.packed(plan, found.config)
    if done is None:
        return replace(found, plan=plan), cast
    return _with(found, found.module, done.plan, done.modules, (*found.quantized.notes, *done.notes)), cast


def scales_checked(plan: Plan, modules: Mapping[str, Quantization]) -> Plan:
    """Give the plan, of these modules or of a part of them, that refuses scales that are no numbers, by name."""
    return checked(plan, {matrix_of(path, plan): how for path, how in modules.items()})


def _with(
    found: Prepared, module: nn.Module, plan: Plan, modules: Mapping[str, Quantization], notes: tuple[str, ...]
) -> Prepared:
    quantize(module, modules)
    return replace(found, module=module, plan=plan, quantized=QuantizedSet(modules, notes))
