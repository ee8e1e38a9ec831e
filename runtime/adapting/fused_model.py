"""Adapters fused into a model on its way into memory: its plan, and the module that fits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weightloom.engine import RuleSet
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.plugins.modules.quantized import quantize
from weightloom.runtime.adapting.adapter_plan import refuse_unless_taken
from weightloom.runtime.adapting.fusing import Base, Fused, fused
from weightloom.runtime.adapting.wish import AdapterWish
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.preparing.prepare import Prepared, built


def fused_model(found: Prepared, wish: AdapterWish, config: Mapping[str, Any]) -> tuple[Prepared, tuple[str, ...]]:
    """Give a model with adapters fused as wished, and what is to be said; raises as `fused` does.

    Raises UsageError too where the architecture takes no adapters.
    """
    if not wish.fused:
        return found, ()
    refuse_unless_taken(found.architecture)

    half = found.half
    before, own = (RuleSet(), config) if half is None else (half.renames, half.config)

    def rules(layout: str) -> RuleSet:
        after = model_rules(found.architecture, own, layout)
        return RuleSet((*before, *after), after.base_model_prefix)

    done = fused(Base(found.plan, rules, own), wish.fused, wish.losses)
    modules = _packed(found.quantized.modules, done)
    made = replace(found, plan=done.plan, quantized=replace(found.quantized, modules=modules))
    notes = (*(f"fused: {path} at {scale:g}" for path, scale in wish.fused), *map(str, done.losses), *done.notes)
    if modules == found.quantized.modules:
        return made, notes
    module = built(found.architecture, found.config, done.plan.params.keys())
    quantize(module, modules)
    return replace(made, module=module), notes


def _packed(before: Mapping[str, Quantization], done: Fused) -> dict[str, Quantization]:
    """Give how modules are packed now: some have more bits, some are dense."""
    made = {name.removesuffix(".weight"): how for name, how in done.reformed.items()}
    after = {path: made.get(path, how) for path, how in before.items()}
    return {path: how for path, how in after.items() if how is not None}
