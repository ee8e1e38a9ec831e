"""Which parameters of a plan are packed, and how: as the shapes and the config say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weightloom.engine import Plan, TensorSpec
from weightloom.engine.quantizing.quantization import AFFINE, WORD
from weightloom.engine.steps.affine import Affine
from weightloom.engine.surgery.packed import companions
from weightloom.runtime.preparing.quantized_set import quantized_set
from weightloom.runtime.preparing.quantized_settings import Settings, paths_in_files, settings_in


def packed_forms(plan: Plan, config: Mapping[str, Any]) -> dict[str, Affine]:
    """Give the form of each parameter that is packed in MLX's affine way, by name; raises as `quantized_set` does."""
    settings = Settings(settings_in(config), paths_in_files(plan))
    found = quantized_set(plan.params, settings, {}).modules
    affine = {path: how for path, how in found.items() if how.mode == AFFINE}
    named = {path if path in plan.params else f"{path}.weight": how for path, how in affine.items()}
    return {name: Affine(how.bits, how.group_size) for name, how in named.items()}


def as_unpacked(params: Mapping[str, TensorSpec], forms: Mapping[str, Affine]) -> dict[str, TensorSpec]:
    """Give the specs of parameters as if none were packed; those that are have no dtype."""
    found = companions(params)
    beside = {other for name in forms for other in found[name].names}
    dense = {name: _dense(params[name], form) for name, form in forms.items()}
    return {name: spec for name, spec in params.items() if name not in beside} | dense


def _dense(words: TensorSpec, form: Affine) -> TensorSpec:
    return TensorSpec(None, (*words.shape[:-1], words.shape[-1] * WORD // form.bits))
