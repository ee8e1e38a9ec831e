"""Pooling inside a model: what a head takes of a row's hidden states."""

from __future__ import annotations

import mlx.core as mx


def mean_of_tokens(x: mx.array, attention_mask: mx.array | None) -> mx.array:
    """Give the mean (B, D) of the tokens of rows x (B, L, D) that the mask (B, L) of 0 and 1 has; None: of all."""
    if attention_mask is None:
        return x.mean(axis=1)
    weights = attention_mask[:, :, None].astype(x.dtype)
    return (x * weights).sum(axis=1) / weights.sum(axis=1)
