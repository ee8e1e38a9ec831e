"""Codes of the block formats as F32 values, on MLX arrays of their bytes.

Source: OCP Microscaling Formats (MX) 1.0 for E2M1, E8M0 and block sizes; OCP 8-bit Floating Point 1.0 for E4M3
and E5M2.
"""

from __future__ import annotations

from functools import lru_cache
from math import nan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.core as mx

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_NAN = 255
_BLOCK = 16


def e4m3_values(codes: mx.array) -> mx.array:
    """Give the values of F8_E4M3 codes (uint8), of the same shape."""
    import mlx.core as mx

    return mx.take(mx.array(_e4m3_table(), mx.float32), codes)


def e5m2_values(codes: mx.array) -> mx.array:
    """Give the values of F8_E5M2 codes (uint8), of the same shape: each is the upper half of a float16."""
    import mlx.core as mx

    return (codes.astype(mx.uint16) << 8).view(mx.float16).astype(mx.float32)


def e8m0_values(codes: mx.array) -> mx.array:
    """Give the powers of two that F8_E8M0 codes (uint8) are, of the same shape; 255 is NaN."""
    import mlx.core as mx

    return mx.take(mx.array(_e8m0_table(), mx.float32), codes)


def nvfp4_values(codes: mx.array) -> mx.array:
    """Give (rows, columns / 16, 16) values of (rows, columns / 2) bytes, two E2M1 codes each, the low nibble first."""
    pairs = e2m1_values(codes)
    return pairs.reshape(codes.shape[0], -1, _BLOCK) if codes.size else pairs.reshape(codes.shape[0], 0, _BLOCK)


def e2m1_values(codes: mx.array) -> mx.array:
    """Give (..., 2 * bytes) values of (..., bytes), two E2M1 codes a byte, the low nibble first."""
    import mlx.core as mx

    pairs = mx.take(mx.array(_e2m1_pairs(), mx.float32), codes.view(mx.uint8), axis=0)
    return pairs.reshape(*codes.shape[:-1], 2 * codes.shape[-1])


@lru_cache
def _e4m3_table() -> tuple[float, ...]:
    return tuple(_e4m3(code) for code in range(256))


def _e4m3(code: int) -> float:
    exponent, mantissa = (code >> 3) & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return nan
    value = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -value if code & 128 else value


@lru_cache
def _e8m0_table() -> tuple[float, ...]:
    return tuple(nan if code == _NAN else 2.0 ** (code - 127) for code in range(256))


@lru_cache
def _e2m1_pairs() -> tuple[tuple[float, float], ...]:
    values = (*_E2M1, *(-value for value in _E2M1))
    return tuple((values[byte & 15], values[byte >> 4]) for byte in range(256))
