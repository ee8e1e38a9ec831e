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
    affine,
    e2m1,
    e4m3,
    in_blocks,
    in_words,
    labelled,
    meant,
    powers,
    shuffled,
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


def wide_fp8(weight: Array) -> Coded:
    """Codes of E5M2, each the upper half of a float16, and a scale for each row."""
    scales = np.abs(weight).max(1, keepdims=True) / np.float32(1024)
    codes = ((weight / scales).astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    values = (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float32) * scales
    return Coded({"weight": Labelled("F8_E5M2", codes), "weight_scale": labelled(scales)}, values)


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


def integers(bits: int, group: int, *, zeros: bool) -> Coder:
    """compressed-tensors' packed integers, with zero points or around the middle."""

    def code(weight: Array) -> Coded:
        codes, scales, zero = affine(weight, bits, group, half=not zeros)
        parts = {
            "weight_packed": labelled(in_words(codes, bits).view(np.int32)),
            "weight_scale": labelled(scales),
            "weight_shape": labelled(np.array(weight.shape, np.int64)),
        }
        if zeros:
            parts["weight_zero_point"] = labelled(np.ascontiguousarray(in_words(zero.T, bits).T).view(np.int32))
        return Coded(parts, meant(codes, scales, zero))

    return code


def signed(weight: Array) -> Coded:
    """Bytes with a sign, a scale for each row."""
    scales = (np.abs(weight).max(1, keepdims=True) / 120).astype(np.float16)
    codes = np.rint(weight / scales.astype(np.float32)).astype(np.int8)
    return Coded({"weight": Labelled("I8", codes), "weight_scale": labelled(scales)}, codes * scales.astype(np.float32))


def gptq(bits: int, group: int, less: int, order: Array | None = None) -> Coder:
    """Words along the inputs; `less` is taken off each zero; `order` gives each input's group."""

    def code(weight: Array) -> Coded:
        columns = weight.shape[1]
        index = np.arange(columns) // group if order is None else order[np.arange(columns)] % (columns // group)
        codes, scales, zero = affine(weight, bits, group, half=False)
        zero = np.maximum(zero, less)
        parts = {
            "qweight": np.ascontiguousarray(in_words(codes, bits).T).view(np.int32),
            "qzeros": in_words((zero - less).T, bits).view(np.int32),
            "scales": np.ascontiguousarray(scales.T),
            "g_idx": index.astype(np.int32),
        }
        values = (codes.astype(np.float32) - zero[:, index]) * scales.astype(np.float32)[:, index]
        return Coded({name: labelled(each) for name, each in parts.items()}, values)

    return code


def awq(group: int) -> Coder:
    """Words along the outputs, whose places are 0, 2, 4, 6, 1, 3, 5, 7."""

    def code(weight: Array) -> Coded:
        codes, scales, zero = affine(weight, 4, group, half=False)
        parts = {
            "qweight": in_words(shuffled(codes.T), 4).view(np.int32),
            "qzeros": in_words(shuffled(zero.T), 4).view(np.int32),
            "scales": np.ascontiguousarray(scales.T),
        }
        return Coded({name: labelled(each) for name, each in parts.items()}, meant(codes, scales, zero))

    return code


def ternary(scale: float, *, divides: bool) -> Coder:
    """Four numbers a byte, of rows a quarter apart; one scale for all."""

    def code(weight: Array) -> Coded:
        rows, columns = weight.shape
        most = np.abs(weight).mean()
        numbers = np.clip(np.rint(weight / most), -1, 1).astype(np.int64)
        quarters = (numbers + 1).astype(np.uint8).reshape(4, rows // 4, columns)
        packed = np.bitwise_or.reduce([quarter << 2 * place for place, quarter in enumerate(quarters)])
        parts = {"weight": labelled(packed), "weight_scale": labelled(np.array([scale], np.float32))}
        return Coded(parts, (numbers / np.float32(scale) if divides else numbers * np.float32(scale)))

    return code


@dataclass(frozen=True)
class Vendor:
    """A format: how a weight is coded, the config's section, and whether MLX has the same numbers."""

    code: Coder
    section: Mapping[str, Any] | None
    exact: bool


def compressed(form: str, **weights: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head", "re:.*mlp.gate$"],
    }


VENDORS = {
    "fp8 blocks": Vendor(fp8((128, 128)), {"quant_method": "fp8", "weight_block_size": [128, 128]}, False),
    "fp8 small blocks": Vendor(
        fp8((40, 48)), {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [40, 48]}, False
    ),
    "fp8 rows": Vendor(fp8(None, "weight_scale"), {"quant_method": "fbgemm_fp8"}, True),
    "fp8 whole": Vendor(whole_fp8, {"quant_method": "fp8", "activation_scheme": "static"}, True),
    "fp8 without a config": Vendor(fp8(None), None, True),
    "fp8 wide": Vendor(wide_fp8, {"quant_method": "fp8", "fmt": "e5m2"}, False),
    "modelopt fp8": Vendor(whole_fp8, {"quant_method": "modelopt", "quant_algo": "FP8"}, True),
    "modelopt nvfp4": Vendor(
        nvfp4(("weight", "weight_scale", "weight_scale_2"), divides=False),
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
        True,
    ),
    "compressed nvfp4": Vendor(
        nvfp4(("weight_packed", "weight_scale", "weight_global_scale"), divides=True),
        compressed("nvfp4-pack-quantized", num_bits=4, type="float"),
        True,
    ),
    "compressed mxfp4": Vendor(
        mxfp4(("weight_packed", "weight_scale")), compressed("mxfp4-pack-quantized", num_bits=4, type="float"), True
    ),
    "compressed floats": Vendor(
        fp8(None, "weight_scale"), compressed("float-quantized", num_bits=8, type="float", strategy="channel"), True
    ),
    "compressed blocks": Vendor(
        fp8((32, 32), "weight_scale"),
        compressed("float-quantized", num_bits=8, type="float", strategy="block", block_structure=[32, 32]),
        False,
    ),
    "compressed int4": Vendor(integers(4, 32, zeros=False), compressed("pack-quantized", num_bits=4), True),
    "compressed int4 with zeros": Vendor(
        integers(4, 32, zeros=True), compressed("pack-quantized", num_bits=4, symmetric=False), True
    ),
    "compressed int8": Vendor(integers(8, 32, zeros=False), compressed("pack-quantized", num_bits=8), True),
    "compressed int3": Vendor(
        integers(3, 32, zeros=True), compressed("pack-quantized", num_bits=3, symmetric=False), True
    ),
    "compressed bytes": Vendor(signed, compressed("int-quantized", num_bits=8, strategy="channel"), True),
    "gptq": Vendor(gptq(4, 32, 1), {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False}, True),
    "gptq 8 bits": Vendor(gptq(8, 32, 1), {"quant_method": "gptq", "bits": 8, "group_size": 32}, True),
    "gptq 3 bits": Vendor(gptq(3, 32, 1), {"quant_method": "gptq", "bits": 3, "group_size": 32}, True),
    "gptq v2": Vendor(
        gptq(4, 32, 0), {"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"}, True
    ),
    "awq": Vendor(awq(32), {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}, True),
    "bitnet": Vendor(
        ternary(37.0, divides=True), {"quant_method": "bitnet", "modules_to_not_convert": ["lm_head"]}, True
    ),
    "bitnet auto": Vendor(
        ternary(0.03, divides=False), {"quant_method": "bitnet", "linear_class": "autobitlinear"}, True
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
            values[name] = found.values.astype(np.float32)
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
