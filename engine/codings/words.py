"""Integers of a few bits in words of 32: eight of four bits, say, the first in the lowest bits.

Those whose bits do not divide 32 run on from word to word, as MLX and GPTQ have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mlx.core as mx

WORD = 32


def unpack(words: mx.array, bits: int, order: Sequence[int] | None = None) -> mx.array:
    """Give (..., 32 / bits times n) numbers, uint32, of (..., n) words; `order`: which each place in a word holds."""
    import mlx.core as mx

    if WORD % bits:
        return _unpack_across(words, bits)
    count = WORD // bits
    places = mx.arange(count, dtype=mx.uint32) * bits
    found = (words.view(mx.uint32)[..., None] >> places) & ((1 << bits) - 1)
    if order is not None:
        found = found[..., mx.array([order.index(number) for number in range(count)])]
    return found.reshape(*words.shape[:-1], words.shape[-1] * count)


def _unpack_across(words: mx.array, bits: int) -> mx.array:
    """Give the numbers of words of which some begin in one word and end in the next: 32 of them in `bits` words."""
    import mlx.core as mx

    count = words.shape[-1]
    whole = mx.pad(words.view(mx.uint32), [(0, 0)] * (words.ndim - 1) + [(0, -count % bits)])
    groups = whole.reshape(*words.shape[:-1], whole.shape[-1] // bits, bits).astype(mx.uint64)
    starts = [bits * number for number in range(WORD)]
    low = groups[..., mx.array([start // WORD for start in starts])]
    high = groups[..., mx.array([min(start // WORD + 1, bits - 1) for start in starts])]
    shifts = mx.array([start % WORD for start in starts], mx.uint64)
    found = ((low | (high << WORD)) >> shifts) & ((1 << bits) - 1)
    numbers = found.astype(mx.uint32).reshape(*words.shape[:-1], whole.shape[-1] * WORD // bits)
    return numbers[..., : count * WORD // bits]


def pack(numbers: mx.array, bits: int) -> mx.array:
    """Give (..., n) words of (..., 32 / bits times n) numbers, uint32, in natural order."""
    import mlx.core as mx

    count = WORD // bits
    places = mx.arange(count, dtype=mx.uint32) * bits
    return mx.sum(numbers.reshape(*numbers.shape[:-1], -1, count) << places, axis=-1).astype(mx.uint32)
