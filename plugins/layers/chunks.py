"""Recurrences by chunks of tokens: cutting them, and solving what the tokens of a chunk do to each other."""

from __future__ import annotations

import mlx.core as mx


def inverse_of_unit_lower(lower: mx.array) -> mx.array:
    """Invert lower triangular matrices (..., n, n) with 1 on the diagonal, n a power of two, by halves.

    It takes products of matrices alone, which every device has, and forms no powers, which might overflow.
    """
    size = lower.shape[-1]
    if size == 1:
        return mx.ones_like(lower)
    half = size // 2
    both = inverse_of_unit_lower(mx.stack([lower[..., :half, :half], lower[..., half:, half:]]))
    first, last = both[0], both[1]
    corner = -(last @ lower[..., half:, :half] @ first)
    above = mx.concatenate([first, mx.zeros_like(first)], axis=-1)
    return mx.concatenate([above, mx.concatenate([corner, last], axis=-1)], axis=-2)


def chunk_size(length: int, most: int) -> int:
    """Give how many tokens are done at once: the power of two that holds `length`, or `most`."""
    return min(most, 1 << (length - 1).bit_length())


def in_chunks(x: mx.array, size: int) -> mx.array:
    """(B, H, L, D) -> (B, H, chunks, size, D), filled up with 0."""
    more = -x.shape[2] % size
    filled = mx.pad(x, [(0, 0), (0, 0), (0, more), (0, 0)]) if more else x
    return filled.reshape(*x.shape[:2], -1, size, x.shape[3])


def decayed_products(left: mx.array, right: mx.array, log_decay: mx.array) -> mx.array:
    """Multiply rows of `left` and `right` (..., n, K) number by number, each decayed by what is between the two.

    Gives (..., n, n), n a power of two: for rows i >= j the sum over k of left[i, k] right[j, k] exp(s), with s the sum
    of log_decay[j + 1..i, k], 0 or less; and 0 above the diagonal. By halves, of which each is brought to where they
    meet: no factor is more than 1, however strong the decay.
    """
    size = left.shape[-2]
    if size == 1:
        return (left * right).sum(axis=-1, keepdims=True)
    half = size // 2
    cut = [(each[..., :half, :], each[..., half:, :]) for each in (left, right, log_decay)]
    both = decayed_products(*(mx.stack(list(pair)) for pair in cut))
    (_, later), (earlier, _), (before, after) = cut
    far = (later * mx.exp(mx.cumsum(after, axis=-2))) @ (earlier * mx.exp(until_the_end(before))).swapaxes(-1, -2)
    above = mx.concatenate([both[0], mx.zeros_like(far)], axis=-1)
    return mx.concatenate([above, mx.concatenate([far, both[1]], axis=-1)], axis=-2)


def until_the_end(x: mx.array) -> mx.array:
    """Sum the rows behind each of x (..., n, K)."""
    return mx.cumsum(x, axis=-2, reverse=True, inclusive=False)
