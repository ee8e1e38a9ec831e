"""Tiny models in vendors' formats: each linear layer of a dense model coded, and the numbers that it means."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from tests.plugins.formats.codes import (
    Array,
    Labelled,
    Tensors,
    e2m1,
    e4m3,
    in_blocks,
    labelled,
    powers,
    to_e4m3,
    write,
)
from tests.runtime.models import config_of, write_model

# Rows of 96 and 160 leave partial blocks, of 64 and 32 whole groups.
SIZES = {"hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32, "head_dim": 16}


@dataclass(frozen=True)
class Coded:
    """One weight's tensors, by the end of their names, and the numbers that they mean."""

    parts: Mapping[str, Labelled]
    values: Array


Coder = Callable[[Array], Coded]


def fp8(block: tuple[int, int] | None, end: str = "weight_scale_inv") -> Coder:
    """Codes of 8 bits with a scale a block; None: a scale for each row."""

    def code(weight: Array) -> Coded:
        rows, columns = weight.shape
        height, width = block or (1, columns)
        grid = np.zeros((-(-rows // height), -(-columns // width)), np.float32)
        for i, j in np.ndindex(grid.shape):
            part = weight[i * height : (i + 1) * height, j * width : (j + 1) * width]
            grid[i, j] = np.abs(part).max() / 448
        scales = in_blocks(grid, (height, width), (rows, columns))
        codes = to_e4m3(weight / scales)
        parts = {"weight": Labelled("F8_E4M3", codes), end: labelled(grid)}
        return Coded(parts, e4m3(codes) * scales)

    return code


def whole_fp8(weight: Array) -> Coded:
    """One scale for all, and one for what is multiplied."""
    scale = np.float32(np.abs(weight).max() / 448)
    codes = to_e4m3(weight / scale)
    parts = {
        "weight": Labelled("F8_E4M3", codes),
        "weight_scale": labelled(np.array(scale)),
        "input_scale": labelled(np.array(0.5, np.float32)),
    }
    return Coded(parts, e4m3(codes) * scale)


def nvfp4(names: tuple[str, str, str], divides: bool) -> Coder:
    """Codes of 4 bits drawn at random: what they mean is what counts."""

    def code(weight: Array) -> Coded:
        rows, columns = weight.shape
        chance = np.random.default_rng(rows * columns + int(abs(weight[0, 0]) * 1e6))
        codes = chance.integers(0, 256, (rows, columns // 2), np.uint8)
        scales = chance.integers(0x28, 0x48, (rows, columns // 16), np.uint8)
        whole = np.float32(chance.uniform(0.01, 0.05))
        values = e2m1(codes).reshape(rows, -1, 16) * e4m3(scales)[..., None] * whole
        second = np.array([1 / whole], np.float32) if divides else np.array(whole)
        stored = (labelled(codes), Labelled("F8_E4M3", scales), labelled(second))
        return Coded(dict(zip(names, stored, strict=True)), values.reshape(rows, columns))

    return code


def mxfp4(names: tuple[str, str] = ("weight", "scale")) -> Coder:
    """Codes of 4 bits and powers of two, drawn at random."""

    def code(weight: Array) -> Coded:
        rows, columns = weight.shape
        chance = np.random.default_rng(rows * columns + int(abs(weight[0, 0]) * 1e6))
        codes = chance.integers(0, 256, (rows, columns // 2), np.uint8)
        scales = chance.integers(120, 124, (rows, columns // 32), np.uint8)
        values = e2m1(codes).reshape(rows, -1, 32) * powers(scales)[..., None]
        return Coded(dict(zip(names, map(labelled, (codes, scales)), strict=True)), values.reshape(rows, columns))

    return code


@dataclass(frozen=True)
class Vendor:
    """A format: how a weight is coded, the config's section, and whether MLX has the same numbers."""

    code: Coder
    section: Mapping[str, Any] | None
    exact: bool


VENDORS = {
    "fp8 blocks": Vendor(fp8((128, 128)), {"quant_method": "fp8", "weight_block_size": [128, 128]}, False),
    "fp8 small blocks": Vendor(
        fp8((40, 48)), {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [40, 48]}, False
    ),
    "fp8 rows": Vendor(fp8(None, "weight_scale"), {"quant_method": "fbgemm_fp8"}, True),
    "fp8 whole": Vendor(whole_fp8, {"quant_method": "fp8", "activation_scheme": "static"}, True),
    "fp8 without a config": Vendor(fp8(None), None, True),
    "modelopt fp8": Vendor(whole_fp8, {"quant_method": "modelopt", "quant_algo": "FP8"}, True),
    "modelopt nvfp4": Vendor(
        nvfp4(("weight", "weight_scale", "weight_scale_2"), divides=False),
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
        True,
    ),
    "mxfp4": Vendor(mxfp4(), {"quant_method": "mxfp4"}, True),
    "mxfp4 without a config": Vendor(mxfp4(), None, True),
}


@dataclass(frozen=True)
class Made:
    """A checkpoint in a vendor's format, and one of the numbers that it means."""

    path: Path
    dense: Path
    values: Mapping[str, Array]
    tensors: Tensors
    config: Mapping[str, Any]


def make(folder: Path, model: str, vendor: Vendor, **changes: Any) -> Made:
    """Write both."""
    config = {**config_of(model, **SIZES), **changes}
    dense = write_model(folder / "dense", model, config)
    tensors: Tensors = {}
    values: dict[str, Array] = {}
    for name, array in mx.load(str(dense / "model.safetensors")).items():  # type: ignore[union-attr]
        plain = np.array(array)
        if name.endswith("_proj.weight"):
            found = vendor.code(0.1 * plain)
            tensors |= {name.removesuffix("weight") + end: part for end, part in found.parts.items()}
            values[name] = found.values
        else:
            tensors[name], values[name] = labelled(plain), plain
    write(dense / "model.safetensors", {name: labelled(each) for name, each in values.items()})
    section = {} if vendor.section is None else {"quantization_config": vendor.section}
    made = Made(folder / "coded", dense, values, tensors, {**config, **section})
    rewrite(made, tensors)
    return made


def rewrite(made: Made, tensors: Tensors, config: Mapping[str, Any] | None = None) -> None:
    """Write the coded checkpoint anew from other tensors."""
    write(made.path / "model.safetensors", tensors)
    (made.path / "config.json").write_text(json.dumps(dict(config or made.config)))
