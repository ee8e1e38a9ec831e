"""What a GGUF tensor becomes: itself, a quantized triple, or float32."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.gguf.blocks import GROUP, PACKINGS, Packing, dequantizer, mxfp4_scales, mxfp4_words
from weightloom.engine.gguf.header import GgufTensor
from weightloom.engine.gguf.superblocks import SUPER_PACKINGS, SuperPacking
from weightloom.engine.gguf.translated import Piece, Translation
from weightloom.engine.spec import TensorSpec

_WEIGHT = ".weight"
_SCAN = 1 << 22
_PACKINGS: dict[str, Packing | SuperPacking] = {**PACKINGS, **SUPER_PACKINGS}


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that MLX can use, and the piece of the file that it is made of."""

    name: str
    spec: TensorSpec
    piece: Piece


def translate(tensor: GgufTensor, source: ByteSource) -> tuple[Made, ...]:
    """Say what a tensor becomes; `source` is asked only for the scales of Q4_0, Q5_0 and Q8_0 blocks."""
    kind = tensor.type
    if kind.plain is not None:
        return (_whole(tensor, kind.plain, Translation(kind.nbytes, kind.nbytes)),)
    # A module's weight has at least two dims; nothing else has a place for scales.
    if kind.packed and tensor.name.endswith(_WEIGHT) and len(tensor.shape) > 1:
        return _pair(tensor) if kind.name == "MXFP4" else _triple(tensor, _PACKINGS[kind.name], source)
    return (_whole(tensor, "F32", Translation(kind.nbytes, 4 * kind.block, dequantizer(kind))),)


def _whole(tensor: GgufTensor, dtype: str, translation: Translation) -> Made:
    return Made(tensor.name, TensorSpec(dtype, tensor.shape), _piece(tensor, translation))


def _triple(tensor: GgufTensor, packing: Packing | SuperPacking, source: ByteSource) -> tuple[Made, ...]:
    *rows, columns = tensor.shape
    stem, taken = tensor.name.removesuffix(_WEIGHT), tensor.type.nbytes
    factors, dtype, width = (packing.wide_scales, packing.wide_biases), "F32", 4 * packing.groups
    if isinstance(packing, Packing) and not _is_wide(tensor, packing, source):
        factors, dtype, width = (packing.scales, packing.biases), "F16", 2
    parts = (
        ("weight", "U32", columns * packing.bits // 32, packing.groups * GROUP * packing.bits // 8, packing.words),
        ("scales", dtype, columns // GROUP, width, factors[0]),
        ("biases", dtype, columns // GROUP, width, factors[1]),
    )
    return tuple(
        Made(f"{stem}.{part}", TensorSpec(name, (*rows, size)), _piece(tensor, Translation(taken, made, apply)))
        for part, name, size, made, apply in parts
    )


def _pair(tensor: GgufTensor) -> tuple[Made, ...]:
    """Give MXFP4's words and powers."""
    *rows, columns = tensor.shape
    stem, taken = tensor.name.removesuffix(_WEIGHT), tensor.type.nbytes
    words = _piece(tensor, Translation(taken, GROUP // 2, mxfp4_words))
    powers = _piece(tensor, Translation(taken, 1, mxfp4_scales))
    return (
        Made(tensor.name, TensorSpec("U32", (*rows, columns // 8)), words),
        Made(f"{stem}.scales", TensorSpec("U8", (*rows, columns // GROUP)), powers),
    )


def _piece(tensor: GgufTensor, translation: Translation) -> Piece:
    return Piece(translation, tensor.offset, prod(tensor.shape) // tensor.type.block)


def _is_wide(tensor: GgufTensor, packing: Packing, source: ByteSource) -> bool:
    """Say whether a bias is too large for float16. Scales are far smaller in any trained model."""
    if packing.zero is None:
        return False
    taken = tensor.type.nbytes
    count = prod(tensor.shape) // tensor.type.block
    step = _SCAN // taken
    buffer = bytearray(min(step, count) * taken)
    for first in range(0, count, step):
        view = memoryview(buffer)[: min(step, count - first) * taken]
        source.read_into(tensor.offset + first * taken, view)
        scales = packing.scales(np.frombuffer(view, np.uint8).reshape(-1, taken))
        with np.errstate(all="ignore"):
            if bool((np.abs(scales) > packing.most).any()):
                return True
    return False
