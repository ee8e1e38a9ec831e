"""Which parameters of a plan are packed, and how: as the shapes and the config say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weightloom.engine import Plan, TensorSpec
from weightloom.engine.quantizing.quantization import WORD, Quantization, part_names
from weightloom.engine.surgery.packed import companions
from weightloom.runtime.preparing.quantized_set import quantized_set
from weightloom.runtime.preparing.quantized_settings import Settings, paths_in_files, settings_in


def packed_forms(plan: Plan, config: Mapping[str, Any]) -> dict[str, Quantization]:
    """Give how each parameter is packed in a way of MLX's, by the name of its words; raises as `quantized_set` does.

    Those that have a scale of the whole matrix too are not among them.
    """
    settings = Settings(settings_in(config), paths_in_files(plan))
    found = quantized_set(plan.params, settings, {}).modules
    named = {path if path in plan.params else f"{path}.weight": how for path, how in found.items()}
    return {
        name: how for name, how in named.items() if _beside(name, plan.params) == part_names(name)[1 : len(how.parts)]
    }


def as_unpacked(params: Mapping[str, TensorSpec], forms: Mapping[str, Quantization]) -> dict[str, TensorSpec]:
    """Give the specs of parameters as if none were packed; those that are have no dtype."""
    beside = {part for name in forms for part in part_names(name)[1:]}
    dense = {name: _dense(params[name], form) for name, form in forms.items()}
    return {name: spec for name, spec in params.items() if name not in beside} | dense


def _beside(name: str, params: Mapping[str, TensorSpec]) -> tuple[str, ...]:
    found = companions(params).get(name)
    return () if found is None else found.names


def _dense(words: TensorSpec, form: Quantization) -> TensorSpec:
    return TensorSpec(None, (*words.shape[:-1], words.shape[-1] * WORD // form.bits))
