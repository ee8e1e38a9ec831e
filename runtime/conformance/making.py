"""Tiny checkpoints of an architecture: its rules, run backwards from random parameters."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from weightloom.engine import Plan, TensorSpec, save_plan
from weightloom.engine.carrier import spec_of
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.saving.save import save
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.modules.binding import param_specs
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.conformance.sample import Sample
from weightloom.runtime.opening.layout_record import MLX

if TYPE_CHECKING:
    import mlx.nn as nn

FLOATS = ("F16", "BF16", "F32")


def write_checkpoint(
    sample: Sample, architecture: Architecture, folder: str | Path, dtype: str = "F32"
) -> dict[str, mx.array]:
    """Write config.json and random weights, floats in `dtype`; give the parameters that a load must give back."""
    module = architecture.build(architecture.read_config(sample.config))
    specs = {name: _in_dtype(spec, dtype) for name, spec in param_specs(module).items()}
    arrays = {name: random_array(name, spec, sample.spread) for name, spec in specs.items()}
    write_arrays(architecture, sample.config, sample.layout, arrays, Path(folder))
    return arrays


def write_arrays(
    architecture: Architecture, config: Mapping[str, Any], layout: str, arrays: Mapping[str, mx.array], folder: Path
) -> None:
    """Write parameters as a checkpoint in a layout, with its config, as that layout's own tools write it."""
    plan = planned(architecture, config, layout, arrays)
    metadata = {"format": MLX} if layout == MLX else None
    save(plan, {name: arrays[name] for name in plan.params}, folder, metadata=metadata)
    (folder / "config.json").write_text(json.dumps(dict(config), indent=2), encoding="utf-8")


def planned(architecture: Architecture, config: Mapping[str, Any], layout: str, arrays: Mapping[str, mx.array]) -> Plan:
    """Plan how parameters are written in a layout."""
    specs = {name: spec_of(array) for name, array in arrays.items()}
    return save_plan(model_rules(architecture, config, layout), specs, config)


def built(architecture: Architecture, config: Mapping[str, Any]) -> nn.Module:
    """Build the module of a config; its parameters are not computed."""
    return architecture.build(architecture.read_config(config))


def random_array(name: str, spec: TensorSpec, spread: float) -> mx.array:
    """Give a parameter's random values, by its name alone; whole numbers are 0."""
    if spec.dtype not in FLOATS:
        return mx.zeros(spec.shape, dtype=_mlx(spec))
    key = mx.random.key(zlib.crc32(name.encode()))
    return (mx.random.normal(spec.shape, key=key) * spread).astype(_mlx(spec))


def _in_dtype(spec: TensorSpec, dtype: str) -> TensorSpec:
    return TensorSpec(dtype if spec.dtype in FLOATS else spec.dtype, spec.shape)


def _mlx(spec: TensorSpec) -> mx.Dtype:
    found: mx.Dtype = getattr(mx, DTYPES[str(spec.dtype)].mlx or "uint8")
    return found
