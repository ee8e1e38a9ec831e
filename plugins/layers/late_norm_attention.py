"""Attention whose queries and keys are normed after they have turned, as Hunyuan has it.

Keys are kept normed, and so cannot turn on: the frequencies of the rope must be the same at every length.
"""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.rope import Rope


class LateNormAttention(Attention):
    """Attention with norms a head, `query_layernorm` and `key_layernorm`, of what has turned; `norm_eps` is theirs."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, norm_eps: float) -> None:
        super().__init__(shape, rope)
        self.query_layernorm = nn.RMSNorm(shape.head_dim, norm_eps)
        self.key_layernorm = nn.RMSNorm(shape.head_dim, norm_eps)

    def placed(self, queries: mx.array, keys: mx.array, position: int | mx.array) -> tuple[mx.array, mx.array]:
        """Turn and norm queries and keys, (B, heads, L, head_dim) each."""
        queries, keys = super().placed(queries, keys, position)
        return self.query_layernorm(queries), self.key_layernorm(keys)
