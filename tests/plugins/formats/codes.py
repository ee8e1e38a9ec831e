"""Codes of vendors' formats and what they mean, written with NumPy alone from the formats' documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


@dataclass(frozen=True)
class Labelled:
    """An array and the dtype that a safetensors header gives it."""

    label: str
    array: Array


LABELS = {"float32": "F32", "float16": "F16", "uint8": "U8", "uint32": "U32", "int32": "I32", "int64": "I64"}
Tensors = dict[str, Labelled]


def labelled(array: Array) -> Labelled:
    return Labelled(LABELS[array.dtype.name], array)


def write(path: Path, tensors: Mapping[str, Labelled]) -> None:
    header, data = {}, b""
    for name, each in tensors.items():
        raw = np.ascontiguousarray(each.array).tobytes()
        ends = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": each.label, "shape": list(each.array.shape), "data_offsets": ends}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def e4m3(codes: Array) -> Array:
    """By arithmetic on the fields of a code."""
    exponent, mantissa = (codes >> 3 & 15).astype(np.int32), (codes & 7).astype(np.float32)
    size = np.where(exponent > 0, np.ldexp(1 + mantissa / 8, exponent - 7), np.ldexp(mantissa / 8, -6))
    size = np.where(codes & 0x7F == 0x7F, np.nan, size)
    return np.asarray(np.where(codes & 0x80, -size, size).astype(np.float32))


def to_e4m3(values: Array) -> Array:
    """The nearest code of each finite value, the even one of two; what is beyond 448 is 448."""
    table = e4m3(np.arange(0x7F, dtype=np.uint8))
    apart = np.abs(np.abs(values)[..., None].astype(np.float64) - table)
    best = apart.min(-1, keepdims=True)
    ties = apart == best
    even = ties & (np.arange(0x7F) % 2 == 0)
    codes = np.where(even.any(-1), even.argmax(-1), ties.argmax(-1)).astype(np.uint8)
    return np.asarray(codes | np.where(np.signbit(values), 0x80, 0).astype(np.uint8))


def e2m1(codes: Array) -> Array:
    """Two codes a byte, the low nibble first: (..., n) -> (..., 2 n)."""
    nibbles = np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:-1], -1)
    return np.asarray(np.where(nibbles & 8, -1, 1).astype(np.float32) * E2M1[nibbles & 7])


def powers(codes: Array) -> Array:
    return np.asarray(np.exp2(codes.astype(np.float64) - 127).astype(np.float32))


def in_blocks(scales: Array, block: tuple[int, int], shape: tuple[int, int]) -> Array:
    """The scale of each element, by the block that it lies in."""
    rows, columns = np.indices(shape)
    return np.asarray(scales[rows // block[0], columns // block[1]])


def in_words(numbers: Array, bits: int) -> Array:
    """Numbers along the last axis in words of 32 bits, the first in the lowest bits."""
    each = numbers.astype(np.uint8)[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    stream = each.reshape(*numbers.shape[:-1], -1)
    stream = np.pad(stream, [(0, 0)] * (stream.ndim - 1) + [(0, -stream.shape[-1] % 32)])
    return np.asarray(np.packbits(stream, axis=-1, bitorder="little").view(np.uint32))


def shuffled(numbers: Array) -> Array:
    """Each eight numbers in the order of AWQ's words."""
    eights = numbers.reshape(*numbers.shape[:-1], -1, 8)
    return np.asarray(eights[..., [0, 2, 4, 6, 1, 3, 5, 7]].reshape(numbers.shape))


def affine(weight: Array, bits: int, group: int, *, half: bool) -> tuple[Array, Array, Array]:
    """Codes (rows, columns), scales and zeros (rows, groups); `half`: the zero is the middle of the range."""
    most = (1 << bits) - 1
    groups = weight.reshape(weight.shape[0], -1, group)
    low, high = np.minimum(groups.min(-1), 0), np.maximum(groups.max(-1), 0)
    if half:
        high = np.abs(groups).max(-1)
        low = -high
    scales = ((high - low) / most).astype(np.float16)
    zeros = (
        np.full(scales.shape, (most + 1) // 2) if half else np.rint(-low / scales.astype(np.float32)).astype(np.int64)
    )
    codes = np.clip(np.rint(groups / scales.astype(np.float32)[..., None]) + zeros[..., None], 0, most)
    return codes.astype(np.int64).reshape(weight.shape), scales, zeros


def meant(codes: Array, scales: Array, zeros: Array) -> Array:
    """What codes with scales and zeros of groups mean."""
    groups = codes.reshape(*scales.shape, -1).astype(np.float32) - zeros[..., None].astype(np.float32)
    return np.asarray((groups * scales.astype(np.float32)[..., None]).reshape(codes.shape).astype(np.float32))


def fraction(rounded: Array, exact: Array) -> float:
    """How far numbers are from others, by the root of the sums of squares."""
    return float(np.sqrt(np.sum((rounded - exact) ** 2) / np.sum(exact**2)))
