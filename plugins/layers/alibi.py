"""ALiBi (arXiv 2108.12409): what lies further back scores less, each head by a slope of its own, and nothing turns."""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.masks import Mask


def slopes(heads: int) -> list[float]:
    """Give the slope of each head: powers of 2 ** (-8 / n) for n heads, a power of two.

    Other numbers have those of the largest power of two below, and then each other one of twice as many.
    """
    power = 1 << (heads.bit_length() - 1)
    plain = [2.0 ** (-8.0 * (number + 1) / power) for number in range(power)]
    finer = [2.0 ** (-8.0 * (2 * number + 1) / (2 * power)) for number in range(heads - power)]
    return [*plain, *finer]


def with_alibi(mask: Mask, length: int, count: int, by_head: mx.array, dtype: mx.Dtype) -> mx.array:
    """Give what is added to scores, (1 or B, heads, L, K) `dtype`, for the last `length` of `count` positions.

    `mask` is as attention gets it, `by_head` (heads,) the slopes. What is not seen gets the lowest number.
    """
    distance = mx.arange(count)[None, :] - mx.arange(count - length, count)[:, None]
    bias = by_head[:, None, None] * distance
    seen = distance <= 0 if mask is None or isinstance(mask, str) else mask
    return mx.where(seen, bias[None], mx.finfo(dtype).min).astype(dtype)
