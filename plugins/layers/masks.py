"""Masks: which of the keys that a cache gives each new token may attend to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import mlx.core as mx

Mask = mx.array | Literal["causal"] | None


@dataclass(frozen=True, slots=True)
class Chunked:
    """A token sees those of its own chunk of `size` positions that came before it, and itself."""

    size: int


Window = int | Chunked | None
"""What a token sees of those before it: the last so many, its own among them; those of its chunk; all."""


def causal_mask(length: int, offset: int, window: Window, padding: mx.array | None = None) -> Mask:
    """Give the mask for `length` tokens from position `offset` on, each seeing itself and what its window has before.

    `padding` (B,) int is how many tokens at the start of each row are none: they see themselves alone, and are not
    seen. The array is (L, K), or (B, 1, L, K) with padding, True where attention is allowed; K is what caches give.
    """
    if padding is None and _all_is_seen(length, offset, window):
        return None if length == 1 else "causal"
    queries = mx.arange(offset, offset + length)[:, None]
    keys = _positions_of_keys(length, offset, window)[None, :]
    if padding is None:
        return _seen(queries, keys, window)
    start = padding[:, None, None, None]
    return (_seen(queries - start, keys - start, window) & (keys >= start)) | (queries == keys)


def present_mask(length: int, window: Window, present: mx.array | None) -> Mask:
    """Give `causal_mask` of a row's first tokens where `present` (B, L) says by 1 which of them are some, by 0 none.

    What fills rows up behind their tokens is seen by none of these, so that nothing has to be hidden.
    """
    seen = causal_mask(length, 0, window)
    if present is None or length == 1 or not (present[:, 1:] > present[:, :-1]).any().item():
        return seen
    positions = mx.arange(length)
    before = _seen(positions[:, None], positions[None, :], window)
    return _with_itself(before & (present != 0)[:, None, None, :], positions)


def mutual_mask(length: int, window: int | None, present: mx.array | None) -> mx.array | None:
    """Give the mask for tokens that see what comes after them as well: all, or those less than `window` away.

    `present` (B, L) says by 1 which tokens are some, by 0 which are none and not seen, None that all are. The array is
    True where attention is allowed, and goes with (B, heads, L, L). With a window each token sees itself at least.
    """
    some = None if present is None else (present != 0)[:, None, None, :]
    if window is None or length <= window:
        return some
    positions = mx.arange(length)
    near = mx.abs(positions[:, None] - positions[None, :]) < window
    return near if some is None else _with_itself(near & some, positions)


def _with_itself(seen: mx.array, positions: mx.array) -> mx.array:
    """Let each token see itself: a row of a mask that has nothing gives no number."""
    return seen | (positions[:, None] == positions[None, :])


def written_out(mask: Mask, length: int, count: int) -> mx.array:
    """Give a mask for `length` tokens at the end of `count` as an array, True where attention is allowed."""
    if mask is None:
        return mx.ones((length, count), mx.bool_)
    if isinstance(mask, mx.array):
        return mask
    return _seen(mx.arange(count - length, count)[:, None], mx.arange(count)[None, :], None)


def _all_is_seen(length: int, offset: int, window: Window) -> bool:
    if isinstance(window, Chunked):
        return offset + length <= window.size
    # Of one token the cache itself gives no more than its window.
    return window is None or length == 1 or offset + length <= window


def _seen(queries: mx.array, keys: mx.array, window: Window) -> mx.array:
    """Say, for positions of queries (..., L, 1) and of keys (..., 1, K), what is seen."""
    before = keys <= queries
    if window is None:
        return before
    if isinstance(window, Chunked):
        return before & (keys // window.size == queries // window.size)
    return before & (keys > queries - window)


def _positions_of_keys(length: int, offset: int, window: Window) -> mx.array:
    """Give the position of each key that a cache gives with `length` new ones, (K,)."""
    stop = offset + length
    if not isinstance(window, int):
        return mx.arange(stop)
    if length == 1 and stop > window:
        # The slots of a full ring: position p stands in slot p mod window.
        return offset - (offset - mx.arange(window)) % window
    return mx.arange(max(offset - window + 1, 0), stop)
