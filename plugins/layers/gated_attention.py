"""Attention whose result a gate of its own scales, number by number (arXiv 2505.06708)."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import Cache
from weightloom.plugins.layers.masks import Mask


class GatedAttention(Attention):
    """`q_proj` makes of each head its queries, then its gate, (heads * 2 * head_dim, hidden_size).

    What is mixed is multiplied by the gate's logistic function before `o_proj`.
    """

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Mix tokens (B, L, hidden_size); `cache` takes their keys and values."""
        both, keys, values = self.projected(x)
        both = both.reshape(*x.shape[:2], -1, 2, self._shape.head_dim)
        mixed = self.attended(both[..., 0, :], self.split(keys), self.split(values), mask, cache)
        return self.out(mixed * mx.sigmoid(both[..., 1, :].flatten(2)), x)

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the matrices before and after attention proper."""
        super().add_projections(shape)
        self.q_proj = nn.Linear(shape.hidden_size, 2 * shape.heads * shape.head_dim, bias=shape.bias)
