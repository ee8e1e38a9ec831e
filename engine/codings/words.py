"""Integers of a few bits in words of 32: eight of four bits, say, the first in the lowest bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.core as mx

WORD = 32


def unpack(words: mx.array, bits: int, order: Sequence[int] | None = None) -> mx.array:
    """Give (..., 32 / bits times n) numbers, uint32, of (..., n) words; `order`: which each place in a word holds."""
    import mlx.core as mx

    count = WORD // bits
    places = mx.arange(count, dtype=mx.uint32) * bits
    found = (words.view(mx.uint32)[..., None] >> places) & ((1 << bits) - 1)
    if order is not None:
        found = found[..., mx.array([order.index(number) for number in range(count)])]
    return found.reshape(*words.shape[:-1], words.shape[-1] * count)


def pack(numbers: mx.array, bits: int) -> mx.array:
    """Give (..., n) words of (..., 32 / bits times n) numbers, uint32, in natural order."""
    import mlx.core as mx

    count = WORD // bits
    places = mx.arange(count, dtype=mx.uint32) * bits
    return mx.sum(numbers.reshape(*numbers.shape[:-1], -1, count) << places, axis=-1).astype(mx.uint32)
