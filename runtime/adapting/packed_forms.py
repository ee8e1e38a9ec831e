"""Which parameters of a plan are packed, and how: as the config and the shapes say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.engine.steps.affine import Affine
from weightloom.engine.surgery.packed import companions
from weightloom.runtime.preparing.quantized_set import quantized_modules

_WORD = 32


def packed_forms(params: Mapping[str, TensorSpec], config: Mapping[str, Any]) -> dict[str, Affine]:
    """Give the form of each packed parameter by name; raises ConfigError as `quantized_modules` does."""
    found = quantized_modules(params, config)
    named = {path if path in params else f"{path}.weight": how for path, how in found.items()}
    return {name: Affine(how.bits, how.group_size) for name, how in named.items()}


def as_unpacked(params: Mapping[str, TensorSpec], forms: Mapping[str, Affine]) -> dict[str, TensorSpec]:
    """Give the specs of parameters as if none were packed; those that are have no dtype."""
    found = companions(params)
    beside = {other for name in forms for other in found[name].names}
    dense = {name: _dense(params[name], form) for name, form in forms.items()}
    return {name: spec for name, spec in params.items() if name not in beside} | dense


def _dense(words: TensorSpec, form: Affine) -> TensorSpec:
    return TensorSpec(None, (*words.shape[:-1], words.shape[-1] * _WORD // form.bits))
