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
