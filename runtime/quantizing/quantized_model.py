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
from weightloom.runtime.quantizing.quantized_plan import Packables, matrix_of
from weightloom.runtime.quantizing.wish import Quantizing

if TYPE_CHECKING:
    import mlx.nn as nn


def as_asked(found: Prepared, dtype: str | None, quantizing: Quantizing | None) -> tuple[Prepared, Casting]:
    """Give the model with its plan and its module as asked, and what was cast; `dtype` as `casting` takes it.

    Raises UsageError for modules that are quantized already, or a recipe that packs none.
    """
    if quantizing is None:
        cast = casting(dtype, found.plan, found.architecture)
        return replace(found, plan=cast.of(found.plan)), cast
    known, before = Packables(quantizing, found), found.quantized
    plan = known.unpacked(found.plan)
    module = _plain(found, plan) if before.modules else found.module
    cast = casting(dtype, plan, found.architecture)
    plan = known.cast(plan, cast)
    done = known.packed(plan, found.config)
    if done is None:
        return _with(found, module, plan, {}, before.notes), cast
    return _with(found, module, done.plan, done.modules, (*before.notes, *done.notes)), cast


def scales_checked(plan: Plan, modules: Mapping[str, Quantization]) -> Plan:
    """Give the plan, of these modules or of a part of them, that refuses scales that are no numbers, by name."""
    return checked(plan, {matrix_of(path, plan): how for path, how in modules.items()})


def _with(
    found: Prepared, module: nn.Module, plan: Plan, modules: Mapping[str, Quantization], notes: tuple[str, ...]
) -> Prepared:
    quantize(module, modules)
    return replace(found, module=module, plan=plan, quantized=QuantizedSet(modules, notes))


def _plain(found: Prepared, plan: Plan) -> nn.Module:
    """Build the module again, with nothing packed in it."""
    return built(found.architecture, found.config, plan.params.keys())
