"""Readers of vendors' formats by other packages: a weight's tensors to the numbers that the package takes them for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.plugins.formats.codes import Array, Labelled

if TYPE_CHECKING:
    import torch

Parts = Mapping[str, Labelled]


@dataclass(frozen=True)
class Reader:
    """A package by the name that it is imported under, and how it reads a weight."""

    package: str
    read: Callable[[Parts], Array]


def tensor(part: Labelled) -> torch.Tensor:
    """A tensor of its own dtype, FP8 too."""
    import torch

    found = torch.from_numpy(np.ascontiguousarray(part.array))
    kinds = {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
    return found.view(kinds[part.label]) if part.label in kinds else found


def fp8_blocks(*block: int) -> Reader:
    def read(parts: Parts) -> Array:
        import torch
        from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight

        weight, scales = (tensor(parts[end]) for end in ("weight", "weight_scale_inv"))
        found: Array = _dequantize_fp8_weight(weight, scales, list(block), torch.float32).numpy()
        return found

    return Reader("transformers", read)


def mxfp4(weight: str, scale: str) -> Reader:
    def read(parts: Parts) -> Array:
        from transformers.integrations.mxfp4 import convert_moe_packed_tensors

        codes, powers = tensor(parts[weight]), tensor(parts[scale])
        blocks = codes.reshape(1, codes.shape[0], -1, 16)
        found: Array = convert_moe_packed_tensors(blocks, powers[None])[0].float().T.contiguous().numpy()
        return found

    return Reader("transformers", read)


def bitnet(parts: Parts) -> Array:
    return _ternary(parts) / parts["weight_scale"].array


def auto_bitnet(parts: Parts) -> Array:
    return _ternary(parts) * parts["weight_scale"].array


def _ternary(parts: Parts) -> Array:
    import torch
    from transformers.integrations.bitnet import unpack_weights

    with torch.compiler.set_stance("force_eager"):
        found: Array = unpack_weights(tensor(parts["weight"]), torch.float32).numpy()
    return found


def awq(parts: Parts) -> Array:
    import mlx.core as mx
    from mlx_lm.utils import _transform_awq_weights

    section = {"bits": 4, "group_size": 32}
    given = {
        f"a.{end}": mx.array(part.array.view(np.uint32) if part.label == "I32" else part.array.astype(np.float32))
        for end, part in parts.items()
    }
    found, _ = _transform_awq_weights(given, section)
    triple = [found[f"a.{part}"] for part in ("weight", "scales", "biases")]
    return np.array(mx.dequantize(*triple, group_size=32, bits=4))


def compressed(form: str, **weights: Any) -> Reader:
    def read(parts: Parts) -> Array:
        from compressed_tensors.compressors import BaseCompressor
        from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

        scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))
        given = {name: tensor(part) for name, part in parts.items()}
        if given["weight_scale"].dtype.is_floating_point and given["weight_scale"].element_size() > 1:
            given["weight_scale"] = given["weight_scale"].float()
        reader = BaseCompressor.get_value_from_registry(form)
        found: Array = reader.decompress(given, scheme)["weight"].float().numpy()
        return found

    return Reader("compressed_tensors", read)


def compressed_nvfp4(packed: str, whole: str, *, divides: bool) -> Reader:
    """Their own steps, in 32 bits, which a decompression of theirs has not."""

    def read(parts: Parts) -> Array:
        import torch
        from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
        from compressed_tensors.quantization import QuantizationArgs
        from compressed_tensors.quantization.lifecycle.forward import dequantize

        codes, scale = tensor(parts[packed]), tensor(parts["weight_scale"]).float()
        args = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group", group_size=16)
        values = unpack_fp4_from_uint8(codes, codes.shape[0], 2 * codes.shape[1], torch.float32)
        given = tensor(parts[whole])
        divisor = given if divides else 1 / given
        found: Array = dequantize(values, scale, args=args, dtype=torch.float32, global_scale=divisor).numpy()
        return found

    return Reader("compressed_tensors", read)


_INTEGERS = {"type": "int", "strategy": "group", "group_size": 32}
_ROWS = compressed("float-quantized", num_bits=8, type="float", strategy="channel")
_WHOLE = compressed("float-quantized", num_bits=8, type="float", strategy="tensor")

READERS = {
    "fp8 blocks": fp8_blocks(128, 128),
    "fp8 small blocks": fp8_blocks(40, 48),
    "fp8 rows": _ROWS,
    "fp8 whole": _WHOLE,
    "fp8 wide": _ROWS,
    "modelopt fp8": _WHOLE,
    "modelopt nvfp4": compressed_nvfp4("weight", "weight_scale_2", divides=False),
    "compressed nvfp4": compressed_nvfp4("weight_packed", "weight_global_scale", divides=True),
    "compressed mxfp4": compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32),
    "compressed floats": _ROWS,
    "compressed blocks": compressed(
        "float-quantized", num_bits=8, type="float", strategy="block", block_structure=[32, 32]
    ),
    "compressed int4": compressed("pack-quantized", num_bits=4, **_INTEGERS),
    "compressed int4 with zeros": compressed("pack-quantized", num_bits=4, symmetric=False, **_INTEGERS),
    "compressed int3": compressed("pack-quantized", num_bits=3, symmetric=False, **_INTEGERS),
    "compressed int8": compressed("pack-quantized", num_bits=8, **_INTEGERS),
    "compressed bytes": compressed("int-quantized", num_bits=8, type="int", strategy="channel"),
    "awq": Reader("mlx_lm", awq),
    "bitnet": Reader("transformers", bitnet),
    "bitnet auto": Reader("transformers", auto_bitnet),
    "mxfp4": mxfp4("weight", "scale"),
}
# What no package at hand reads without a GPU is held against NumPy alone, from the format's document.
BY_DOCUMENT = {"gptq", "gptq 3 bits", "gptq 8 bits", "gptq v2", "fp8 without a config", "mxfp4 without a config"}
