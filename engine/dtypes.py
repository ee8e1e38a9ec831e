"""The element types that a safetensors file can hold, and how MLX carries each.

Source for names and widths: the safetensors format, `Dtype` of its reference implementation (0.8).
MLX has a type of its own for some; the others travel as bytes under their own label (the *carrier*).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: width in bits, its class, and the MLX type that carries it.

    `kind` is "float", "int", "bool" or "complex". `mlx` is the name of the MLX dtype with the same
    element width, or None where MLX has none and the bytes travel as uint8.
    """

    name: str
    bits: int
    kind: str
    mlx: str | None


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("BOOL", 8, "bool", "bool_"),
        DType("F4", 4, "float", None),
        DType("F6_E2M3", 6, "float", None),
        DType("F6_E3M2", 6, "float", None),
        DType("U8", 8, "int", "uint8"),
        DType("I8", 8, "int", "int8"),
        DType("F8_E5M2", 8, "float", None),
        DType("F8_E4M3", 8, "float", "uint8"),
        DType("F8_E8M0", 8, "float", "uint8"),
        DType("F8_E4M3FNUZ", 8, "float", None),
        DType("F8_E5M2FNUZ", 8, "float", None),
        DType("I16", 16, "int", "int16"),
        DType("U16", 16, "int", "uint16"),
        DType("F16", 16, "float", "float16"),
        DType("BF16", 16, "float", "bfloat16"),
        DType("I32", 32, "int", "int32"),
        DType("U32", 32, "int", "uint32"),
        DType("F32", 32, "float", "float32"),
        DType("C64", 64, "complex", "complex64"),
        DType("F64", 64, "float", None),
        DType("I64", 64, "int", "int64"),
        DType("U64", 64, "int", "uint64"),
    )
}


def byte_length(dtype: str, shape: tuple[int, ...]) -> int | None:
    """Give the bytes that a tensor takes, or None when its elements do not fill whole bytes."""
    bits = DTYPES[dtype].bits * prod(shape)
    return None if bits % 8 else bits // 8
