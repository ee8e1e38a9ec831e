"""Masks: which of the keys that a cache gives each new token may attend to."""

from __future__ import annotations

from typing import Literal

import mlx.core as mx

Mask = mx.array | Literal["causal"] | None


def causal_mask(length: int, offset: int, window: int | None) -> Mask:
    """Give the mask for `length` tokens from position `offset` on, each seeing itself and what came before.

    With a window, a token sees the `window` last positions, its own among them. One token sees all that its cache
    gives. The array is (L, K), True where attention is allowed, K = L + min(offset, window - 1).
    """
    if length == 1:
        return None
    if window is None or offset + length <= window:
        return "causal"
    queries = mx.arange(offset, offset + length)[:, None]
    keys = mx.arange(max(offset - window + 1, 0), offset + length)[None, :]
    return (keys <= queries) & (keys > queries - window)
