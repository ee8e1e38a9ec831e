"""Attention proper: from queries, keys and values to the mix of values."""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.masks import Mask


def attend(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    scale: float,
    mask: Mask,
    softcap: float | None = None,
    sinks: mx.array | None = None,
) -> mx.array:
    """Give the mix (B, heads, L, value_dim) for queries (B, heads, L, D), keys (B, kv_heads, K, D), values likewise.

    Scores are products times `scale`; `softcap` c makes of a score s c * tanh(s / c) (Gemma 2, arXiv 2408.00118), and
    its mask says what is allowed, never what is added. `sinks` (heads,) are scores, as they are, of a key whose value
    is nothing (gpt-oss). One head of keys serves heads / kv_heads of queries in a row.
    """
    if softcap is None:
        return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask, sinks=sinks)
    batch, heads, length, dims = queries.shape
    groups = keys.shape[1]
    grouped = queries.reshape(batch, groups, heads // groups, length, dims)
    scores = (grouped * scale) @ keys[:, :, None].swapaxes(-1, -2)
    scores = _masked(mx.tanh(scores / softcap) * softcap, mask)
    mixed = _shares(scores, sinks) @ values[:, :, None]
    return mixed.reshape(batch, heads, length, -1)


def _shares(scores: mx.array, sinks: mx.array | None) -> mx.array:
    """Scores (B, kv_heads, n, L, K) -> the share of each key, less than 1 in sum where there are `sinks` (heads,)."""
    if sinks is None:
        return mx.softmax(scores, axis=-1, precise=True)
    of_sinks = sinks.astype(scores.dtype).reshape(*scores.shape[1:3], 1, 1)
    every = mx.concatenate([scores, mx.broadcast_to(of_sinks, (*scores.shape[:-1], 1))], axis=-1)
    return mx.softmax(every, axis=-1, precise=True)[..., :-1]


def _masked(scores: mx.array, mask: Mask) -> mx.array:
    """Scores (B, kv_heads, n, L, K), those that are not allowed as low as can be."""
    if mask is None:
        return scores
    if isinstance(mask, str):
        length, count = scores.shape[-2:]
        allowed = mx.arange(count)[None, :] <= mx.arange(count - length, count)[:, None]
    else:
        allowed = mask if mask.ndim < 4 else mask[:, :, None]
    return mx.where(allowed, scores, mx.finfo(scores.dtype).min)
