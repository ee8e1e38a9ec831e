"""Attention: heads of queries that share heads of keys and values, turned by position, causal, windowed or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.cache import Cache, position_of
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.norms import Norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.side_by_side import SideBySide, side_by_side


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Sizes and numbers of attention.

    `bias` is that of q, k and v, `out_bias` that of o; with a `norm_eps` each head of queries and keys has an RMS norm.
    Scores are multiplied by `scale`, head_dim ** -0.5 where it is None, and capped by `softcap`, if any.
    """

    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    bias: bool = False
    out_bias: bool = False
    norm_eps: float | None = None
    scale: float | None = None
    softcap: float | None = None

    @classmethod
    def of(cls, fields: TextFields, **changes: Any) -> AttentionShape:
        """Give the shape that a config says; `attention_bias` is that of all four, unless `changes` say otherwise."""
        bias = fields.attention_bias
        sizes = (fields.hidden_size, fields.num_attention_heads, fields.kv_heads, fields.head_size)
        return cls(*sizes, **{"bias": bias, "out_bias": bias, **changes})


class Attention(nn.Module):
    """Grouped-query attention; parameters `q_proj`, `k_proj`, `v_proj`, `o_proj`, and `q_norm`, `k_norm` if any.

    `head_norm` makes the norms of heads of queries and keys; without it they are RMS norms where the shape has an eps.
    Without a `rope` positions are not told apart but by what comes before. A family that does one step in its own way
    overrides that step: `project`, `normed`, `placed`, `mixed`, `out`; one whose matrices are others,
    `add_projections` as well.
    """

    def __init__(self, shape: AttentionShape, rope: Rope | None, head_norm: Norm | None = None) -> None:
        super().__init__()
        self._shape = shape
        self._rope = rope
        self._joined: SideBySide | None = None
        self.add_projections(shape)
        self.q_norm = _head_norm(shape, head_norm)
        self.k_norm = _head_norm(shape, head_norm)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Mix tokens (B, L, hidden_size); `cache` takes their keys and values."""
        return self.out(self.through_cache(*self.heads_of(x), mask, cache), x)

    def attended(self, queries: mx.array, keys: mx.array, values: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Attend with queries, keys and values as projected, (B, L, heads, head_dim) -> (B, L, heads * head_dim)."""
        queries, keys, values = self.normed(queries, keys, values)
        return self.through_cache(by_head(queries), by_head(keys), by_head(values), mask, cache)

    def heads_of(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and values before they have positions, (B, heads, L, head_dim) each."""
        queries, keys, values = self.normed(*self.project(x))
        return by_head(queries), by_head(keys), by_head(values)

    def through_cache(self, queries: mx.array, keys: mx.array, values: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Attend with what `heads_of` gives -> (B, L, heads * head_dim); `cache` takes keys and values."""
        position, seen = position_of(cache), cache.offset
        queries, keys = self.placed(queries, keys, position)
        return self.over(queries, *cache.update(keys, values), mask, seen, position)

    def over(
        self,
        queries: mx.array,
        keys: mx.array,
        values: mx.array,
        mask: Mask,
        seen: int,
        position: int | mx.array,
    ) -> mx.array:
        """Attend to what a cache gives that had seen `seen` tokens before; (B, L, heads * head_dim)."""
        if self._rope is not None:
            keys = self._rope.brought(keys, queries.shape[2], seen, position)
        mixed = self.mixed(queries, keys, values, mask)
        return mixed.transpose(0, 2, 1, 3).flatten(2)

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the matrices before and after attention proper."""
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, wide, bias=shape.bias)
        self.k_proj = nn.Linear(shape.hidden_size, narrow, bias=shape.bias)
        self.v_proj = nn.Linear(shape.hidden_size, narrow, bias=shape.bias)
        self.o_proj = nn.Linear(wide, shape.hidden_size, bias=shape.out_bias)

    def project(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and values, (B, L, heads, head_dim) each."""
        queries, keys, values = self.projected(x)
        return self.split(queries), self.split(keys), self.split(values)

    def projected(self, x: mx.array) -> Sequence[mx.array]:
        """(B, L, hidden_size) -> what `q_proj`, `k_proj` and `v_proj` make of it."""
        if self._joined is not None and self._joined.holds(self["q_proj"], self["k_proj"], self["v_proj"]):
            return self._joined(x)
        # By item: it is looked up for each layer of each token, and as an attribute that takes five times as long.
        return self["q_proj"](x), self["k_proj"](x), self["v_proj"](x)

    def fuse(self) -> bool:
        """Compute queries, keys and values as one product, where their matrices are of one kind."""
        own = all(name in self for name in ("q_proj", "k_proj", "v_proj"))
        self._joined = side_by_side(self.q_proj, self.k_proj, self.v_proj) if own else None
        return self._joined is not None

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm queries and keys, (B, L, heads, head_dim) each."""
        return self["q_norm"](queries), self["k_norm"](keys), values

    def placed(self, queries: mx.array, keys: mx.array, position: int | mx.array) -> tuple[mx.array, mx.array]:
        """Put positions into queries and keys, (B, heads, L, head_dim) each, the first token at `position`."""
        if self._rope is None:
            return queries, keys
        return self._rope.both(queries, keys, position)

    def mixed(self, queries: mx.array, keys: mx.array, values: mx.array, mask: Mask) -> mx.array:
        """Mix values, (B, heads, L, head_dim)."""
        return attend(queries, keys, values, self.scale, mask, self._shape.softcap)

    def out(self, mixed: mx.array, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, hidden_size); `x` is what attention was called with."""
        made: mx.array = self["o_proj"](mixed)
        return made

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return self._shape.head_dim**-0.5 if self._shape.scale is None else self._shape.scale

    def heads(self) -> dict[str, int]:
        """Give the count of heads of queries, and of keys and values, by the config's field."""
        return {"num_attention_heads": self._shape.heads, "num_key_value_heads": self._shape.kv_heads}

    def split(self, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, heads, head_dim)."""
        return x.reshape(*x.shape[:2], -1, self._shape.head_dim)


class WideNormAttention(Attention):
    """The same with norms over the whole width of queries and of keys, before they are cut into heads.

    As OLMo 2 has it (arXiv 2501.00656); `norm_eps` is theirs. Among ranks the width must not be cut.
    """

    def __init__(self, shape: AttentionShape, rope: Rope | None, norm_eps: float) -> None:
        super().__init__(shape, rope)
        self.q_norm = nn.RMSNorm(shape.heads * shape.head_dim, norm_eps)
        self.k_norm = nn.RMSNorm(shape.kv_heads * shape.head_dim, norm_eps)

    def project(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> normed queries and keys, and values, (B, L, heads, head_dim) each."""
        queries, keys, values = self.projected(x)
        return self.split(self.q_norm(queries)), self.split(self.k_norm(keys)), self.split(values)

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Give them as they come: `project` has normed them."""
        return queries, keys, values


class FusedAttention(Attention):
    """The same with q, k and v in one matrix `qkv_proj`, queries first, whole heads each; and `o_proj`."""

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the two matrices."""
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.qkv_proj = nn.Linear(shape.hidden_size, wide + 2 * narrow, bias=shape.bias)
        self.o_proj = nn.Linear(wide, shape.hidden_size, bias=shape.out_bias)

    def project(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and values, (B, L, heads, head_dim) each."""
        return self.parts(self.qkv_proj(x))

    def parts(self, fused: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, (heads + 2 * kv_heads) * head_dim) -> queries, keys and values, by heads."""
        heads, kv_heads = self._shape.heads, self._shape.kv_heads
        queries, keys, values = mx.split(self.split(fused), [heads, heads + kv_heads], axis=2)
        return queries, keys, values


def by_head(x: mx.array) -> mx.array:
    """(B, L, heads, head_dim) -> (B, heads, L, head_dim)."""
    return x.transpose(0, 2, 1, 3)


def _head_norm(shape: AttentionShape, norm: Norm | None) -> nn.Module:
    if norm is not None:
        return norm(shape.head_dim)
    return nn.Identity() if shape.norm_eps is None else nn.RMSNorm(shape.head_dim, shape.norm_eps)
