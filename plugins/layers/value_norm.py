"""Attention with norms of heads of values too, as later Gemmas have it; values may be keys, before norm and rope."""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.norms import UnweightedNorm, rms_norm
from weightloom.plugins.layers.rope import Rope


class ValueNormAttention(Attention):
    """Attention with norms of heads of queries, keys and values; that of values has no weight (Gemma 3n)."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, norm_eps: float) -> None:
        super().__init__(shape, rope, rms_norm(norm_eps))
        self.v_norm = UnweightedNorm(norm_eps)

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm all three, (B, L, heads, head_dim) each."""
        return self.q_norm(queries), self.k_norm(keys), self.v_norm(values)


class KeysAsValues(ValueNormAttention):
    """Attention whose values are its keys, normed otherwise and not turned; there is no `v_proj`."""

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the matrices of queries, of keys, and of what comes after."""
        super().add_projections(shape)
        del self.v_proj

    def projected(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and keys."""
        keys = self.k_proj(x)
        return self.q_proj(x), keys, keys
