"""Latent attention (arXiv 2405.04434, 2.1): of a token a vector is kept that keys and values of all heads come of.

Keys have a part that does not turn, made of the latent vector, and one that turns, which all heads share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.latent_fields import LatentFields
from weightloom.plugins.configs.rope_config import RopeConfig
from weightloom.plugins.configs.yarn_rope import YarnRope
from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.cache import Cache, position_of
from weightloom.plugins.layers.latent_products import LatentProducts
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.rope import Rope

# That of the norms of latent vectors, whatever the config says of the others.
_EPS = 1e-6

HEAD_CUTS = {
    r"self_attn\.(q|q_b|kv_b)_proj\.": "column",
    r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
}
"""How heads are shared out among ranks; the latent vector is whole on each."""


@dataclass(frozen=True, slots=True)
class LatentShape:
    """Sizes and numbers of latent attention; scores are multiplied by `scale`.

    `rank` is the size of the latent vector, `query_rank` that of what queries are made of, None for the hidden state
    itself. A head of queries and keys is `plain` dims and `turned` ones, one of values `value`. `bias` is that of what
    leads from and to the hidden state.
    """

    hidden_size: int
    heads: int
    query_rank: int | None
    rank: int
    plain: int
    turned: int
    value: int
    scale: float
    bias: bool = False

    @classmethod
    def of(cls, fields: LatentFields, rope: RopeConfig, **changes: Any) -> LatentShape:
        """Give the shape that a config says; a scaled rope says how much the scores are scaled besides."""
        return cls.without_turning(fields, **{"scale": fields.head_size**-0.5 * score_factor(rope), **changes})

    @classmethod
    def without_turning(cls, fields: LatentFields, **changes: Any) -> LatentShape:
        """Give the shape that a config says where nothing turns."""
        scale = fields.head_size**-0.5
        parts = (fields.qk_nope_head_dim, fields.qk_rope_head_dim, fields.v_head_dim)
        ranks = (fields.q_lora_rank, fields.kv_lora_rank)
        found = (fields.hidden_size, fields.num_attention_heads, *ranks, *parts)
        return cls(*found, **{"scale": scale, "bias": fields.attention_bias, **changes})


def score_factor(rope: RopeConfig) -> float:
    """Give what YaRN multiplies scores by here: the square of the temperature that `mscale_all_dim` makes, if any."""
    kind = rope.kind
    return kind.temperature(rope.rotation, kind.mscale_all_dim or 0.0) ** 2 if isinstance(kind, YarnRope) else 1.0


class LatentAttention(nn.Module):
    """Parameters `q_proj`, or `q_a_proj`, `q_a_layernorm` and `q_b_proj`; those of `kv_a` and `kv_b`; `o_proj`.

    The cache keeps the latent vectors (B, 1, K, rank) and the turned parts of keys (B, 1, K, turned). For one token the
    queries are brought to where the latent vectors are; for more of them, those are made into keys and values.
    """

    def __init__(self, shape: LatentShape, rope: Rope | None) -> None:
        super().__init__()
        self._shape = shape
        self._rope = rope
        hidden, heads, bias = shape.hidden_size, shape.heads, shape.bias
        width = heads * (shape.plain + shape.turned)
        if shape.query_rank is None:
            self.q_proj = nn.Linear(hidden, width, bias=False)
        else:
            self.q_a_proj = nn.Linear(hidden, shape.query_rank, bias=bias)
            self.q_a_layernorm = nn.RMSNorm(shape.query_rank, _EPS)
            self.q_b_proj = nn.Linear(shape.query_rank, width, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(hidden, shape.rank + shape.turned, bias=bias)
        self.kv_a_layernorm = nn.RMSNorm(shape.rank, _EPS)
        self.kv_b_proj = nn.Linear(shape.rank, heads * (shape.plain + shape.value), bias=False)
        self.o_proj = nn.Linear(heads * shape.value, hidden, bias=bias)

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Mix tokens (B, L, hidden_size); `cache` takes their latent vectors and turned keys."""
        position = position_of(cache)
        latent, keys = self.kept(x, position, cache)
        return self.mix(self.compressed(x), position, latent, keys, mask)

    def compressed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> what queries are made of, (B, L, query_rank), or x itself."""
        if self._shape.query_rank is None:
            return x
        found: mx.array = self.q_a_layernorm(self.q_a_proj(x))
        return found

    def kept(self, x: mx.array, position: int | mx.array, cache: Cache) -> tuple[mx.array, mx.array]:
        """Give `cache` what it keeps of tokens (B, L, hidden_size); give latent vectors and turned keys of all."""
        latent, key = mx.split(self.kv_a_proj_with_mqa(x)[:, None], [self._shape.rank], axis=-1)
        if self._rope is None:
            return cache.update(self.kv_a_layernorm(latent), key)
        seen, new = cache.offset, x.shape[1]
        latent, keys = cache.update(self.kv_a_layernorm(latent), self._rope.kept(key, position))
        return latent, self._rope.brought(keys, new, seen, position)

    def mix(
        self, compressed: mx.array, position: int | mx.array, latent: mx.array, keys: mx.array, mask: Mask
    ) -> mx.array:
        """Give what attention makes of tokens, (B, L, hidden_size), by what their queries are made of."""
        plain, turning = self._queries(compressed)
        turned = self.turned(turning, position)
        if compressed.shape[1] > 1 or isinstance(mask, str):
            mixed = self.expanded(plain, turned, latent, keys, mask)
        else:
            mixed = self.absorbed(plain, turned, latent, keys, mask)
        made: mx.array = self.o_proj(mixed.transpose(0, 2, 1, 3).flatten(2))
        return made

    def turned(self, heads: mx.array, position: int | mx.array) -> mx.array:
        """Turn heads (B, heads, L, turned), the first token at `position`; without a rope they stay as they are."""
        return heads if self._rope is None else self._rope(heads, position)

    def expanded(self, plain: mx.array, turned: mx.array, latent: mx.array, keys: mx.array, mask: Mask) -> mx.array:
        """Mix values made of latent vectors (B, 1, K, rank): the mix is (B, heads, L, value).

        Queries are `plain` (B, heads, L, plain) and `turned` (B, heads, L, turned); `keys` (B, 1, K, turned).
        """
        shape = self._shape
        batch, _, count, _ = latent.shape
        both = self.kv_b_proj(latent[:, 0]).reshape(batch, count, -1, shape.plain + shape.value)
        own, values = mx.split(both.transpose(0, 2, 1, 3), [shape.plain], axis=-1)
        shared = mx.broadcast_to(keys, (*own.shape[:3], shape.turned))
        queries = mx.concatenate([plain, turned], axis=-1)
        return attend(queries, mx.concatenate([own, shared], axis=-1), values, shape.scale, mask)

    def absorbed(
        self, plain: mx.array, turned: mx.array, latent: mx.array, keys: mx.array, mask: mx.array | None
    ) -> mx.array:
        """Give the same, without a key or a value for each head: cheaper for few tokens after many.

        `mask` is written out: True where attention is allowed, or None where it is everywhere.
        """
        shape = self._shape
        products = LatentProducts(self.kv_b_proj, shape.plain + shape.value, shape.plain, shape.rank)
        batch, heads, length, _ = plain.shape
        # All heads have the same keys: their queries are rows of one product.
        brought = products.queries(plain * shape.scale).flatten(1, 2)
        scores = brought @ latent[:, 0].swapaxes(-1, -2)
        scores = scores + (turned * shape.scale).flatten(1, 2) @ keys[:, 0].swapaxes(-1, -2)
        scores = scores.reshape(batch, heads, length, -1)
        if mask is not None:
            scores = mx.where(mask, scores, mx.finfo(scores.dtype).min)
        weights = mx.softmax(scores, axis=-1, precise=True).flatten(1, 2)
        return products.values((weights @ latent[:, 0]).reshape(batch, heads, length, -1))

    def heads(self) -> dict[str, int]:
        """Give the count of heads, by the config's field."""
        return {"num_attention_heads": self._shape.heads}

    def _queries(self, compressed: mx.array) -> tuple[mx.array, mx.array]:
        """Give the part of queries that does not turn, and the one that does, (B, heads, L, ...) each."""
        shape = self._shape
        made = self.q_proj(compressed) if shape.query_rank is None else self.q_b_proj(compressed)
        by_head = made.reshape(*made.shape[:2], -1, shape.plain + shape.turned).transpose(0, 2, 1, 3)
        plain, turning = mx.split(by_head, [shape.plain], axis=-1)
        return plain, turning
