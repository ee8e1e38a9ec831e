"""Attention: heads of queries that share heads of keys and values, turned by position, causal, windowed or not."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.cache import Cache
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.rope import Rope


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Sizes of attention. `bias` is that of q, k and v, `out_bias` that of o; `norm_eps` None: no q and k norm."""

    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    bias: bool = False
    out_bias: bool = False
    norm_eps: float | None = None


class Attention(nn.Module):
    """Grouped-query attention; parameters `q_proj`, `k_proj`, `v_proj`, `o_proj`, and `q_norm`, `k_norm` if any."""

    def __init__(self, shape: AttentionShape, rope: Rope) -> None:
        super().__init__()
        self._shape = shape
        self._rope = rope
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, wide, bias=shape.bias)
        self.k_proj = nn.Linear(shape.hidden_size, narrow, bias=shape.bias)
        self.v_proj = nn.Linear(shape.hidden_size, narrow, bias=shape.bias)
        self.o_proj = nn.Linear(wide, shape.hidden_size, bias=shape.out_bias)
        self.q_norm = _head_norm(shape)
        self.k_norm = _head_norm(shape)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Mix tokens (B, L, hidden_size); `cache` takes their keys and values."""
        offset = cache.offset
        queries = self._rope(_by_head(self.q_norm(self._split(self.q_proj(x)))), offset)
        keys = self._rope(_by_head(self.k_norm(self._split(self.k_proj(x)))), offset)
        keys, values = cache.update(keys, _by_head(self._split(self.v_proj(x))))
        scale = self._shape.head_dim**-0.5
        mixed = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask)
        return self.o_proj(mixed.transpose(0, 2, 1, 3).flatten(2))

    def heads(self) -> dict[str, int]:
        """Give the count of heads of queries, and of keys and values, by the config's field."""
        return {"num_attention_heads": self._shape.heads, "num_key_value_heads": self._shape.kv_heads}

    def _split(self, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, heads, head_dim)."""
        return x.reshape(*x.shape[:2], -1, self._shape.head_dim)


def _by_head(x: mx.array) -> mx.array:
    """(B, L, heads, head_dim) -> (B, heads, L, head_dim)."""
    return x.transpose(0, 2, 1, 3)


def _head_norm(shape: AttentionShape) -> nn.Module:
    return nn.Identity() if shape.norm_eps is None else nn.RMSNorm(shape.head_dim, shape.norm_eps)
