"""Floats to MXFP8: 32 numbers of a row share a power of two, which is rounded up.

Source: OCP Microscaling Formats (MX) 1.0. Rounding the power to the nearest would cut off the largest numbers of about
half of the groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.core as mx

GROUP = 32
# 448, the largest number of E4M3, is 1.75 times 2 ** 8: the bits of a float32's fraction that mean .75.
_LARGEST_POWER = 8
_LARGEST_FRACTION = 0x600000
_FRACTION_BITS = 23
_BIAS = 127
_NAN = 0x7F


def to_mxfp8(values: mx.array) -> tuple[mx.array, mx.array]:
    """Give words (rows, columns / 4) and powers (rows, columns / 32) for F32 (rows, columns).

    The power is the least with which no number is beyond 448, and each number is rounded once, to the nearest.
    """
    import mlx.core as mx

    rows, columns = values.shape
    groups = values.reshape(rows, columns // GROUP, GROUP)
    is_nan = mx.isnan(groups)
    most = mx.max(mx.abs(mx.where(is_nan, 0.0, groups)), axis=-1, keepdims=True)
    bits = most.view(mx.int32)
    over = ((bits & ((1 << _FRACTION_BITS) - 1)) > _LARGEST_FRACTION).astype(mx.int32)
    powers = mx.clip((bits >> _FRACTION_BITS) - _LARGEST_POWER + over, 0, 2 * _BIAS)
    # Two to the minus power, put together from its bits: a product with it is exact.
    factors = ((2 * _BIAS - powers) << _FRACTION_BITS).view(mx.float32)
    codes = mx.where(is_nan, mx.array(_NAN, mx.uint8), mx.to_fp8(groups * factors))
    return codes.reshape(rows, columns).view(mx.uint32), powers.astype(mx.uint8).reshape(rows, columns // GROUP)
