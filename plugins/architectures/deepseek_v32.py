"""DeepSeek-V3.2 (arXiv 2512.02556): DeepSeek-V3 whose tokens attend to those alone that an index chooses for them.

The index is attention without values: heads of queries against one head of keys, each kept where positive, summed with
weights. Its halves turn against each other where pairs of neighbours do elsewhere. The vendor's code rotates and rounds
queries and keys of the index to FP8 besides; as in Transformers, they are what they are. Parameters are named as
Transformers 5 names those of DeepseekV32ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.deepseek_fields import DeepSeekV3Fields
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cache import IndexedCache, position_of
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.latent_attention import LatentAttention, LatentShape
from weightloom.plugins.layers.latent_decoder import SHARDING, LatentConfig, build_latent
from weightloom.plugins.layers.masks import Mask, written_out
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import best
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.layouts.latent_halves import unpacked_halves
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(DeepSeekV3Fields):
    """What config.json says; defaults are the published ones."""

    max_position_embeddings: int = 163840
    q_lora_rank: int = 1536
    index_topk: int = 2048
    index_head_dim: int = 128
    index_n_heads: int = 64

    def check_index(self) -> None:
        """Raise ConfigError, naming the field, for an index that cannot be."""
        refuse_non_positive({name: getattr(self, name) for name in ("index_topk", "index_head_dim", "index_n_heads")})
        size, turned = self.index_head_dim, self.qk_rope_head_dim
        refuse_unless(size >= turned, "index_head_dim", size, f"qk_rope_head_dim, {turned}, at least")


Config: TypeAlias = LatentConfig[Fields]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check_all()
    fields.check_index()
    return LatentConfig.of(fields, content)


class Indexer(nn.Module):
    """Parameters `wq_b`, `wk`, `k_norm`, and `weights_proj` for the weights of the heads; scores are float32."""

    def __init__(self, fields: Fields, rope: Rope) -> None:
        super().__init__()
        self._rope = rope
        self._count = fields.index_topk
        self._heads, self._dims = fields.index_n_heads, fields.index_head_dim
        self.wq_b = nn.Linear(fields.q_lora_rank, self._heads * self._dims, bias=False)
        self.wk = nn.Linear(fields.hidden_size, self._dims, bias=False)
        self.k_norm = nn.LayerNorm(self._dims, 1e-6)
        self.weights_proj = nn.Linear(fields.hidden_size, self._heads, bias=False)

    def __call__(self, x: mx.array, compressed: mx.array, mask: Mask, cache: IndexedCache) -> mx.array | None:
        """Give the tokens that each of x (B, L, hidden_size) attends to, (B, L, index_topk) int; None for all.

        What `mask` does not allow is chosen only where nothing else is left.
        """
        position = position_of(cache)
        keys = cache.index(self._rope(self.k_norm(self.wk(x))[:, None], position))
        length, count = x.shape[1], keys.shape[2]
        if count <= self._count:
            return None
        queries = self.wq_b(compressed).reshape(*x.shape[:2], self._heads, self._dims).transpose(0, 2, 1, 3)
        scores = self._rope(queries, position).astype(mx.float32) @ keys.astype(mx.float32).swapaxes(-1, -2)
        weights = self.weights_proj(x).astype(mx.float32)[:, :, None]
        summed = (weights @ mx.maximum(scores, 0).transpose(0, 2, 1, 3)).swapaxes(1, 2)
        allowed = written_out(mask, length, count)
        return best(mx.where(allowed, summed, -mx.inf), self._count)[:, 0]


class SparseLatentAttention(LatentAttention):
    """Latent attention to what an `indexer` chooses."""

    def __init__(self, shape: LatentShape, rope: Rope, indexer: Indexer) -> None:
        super().__init__(shape, rope)
        self.indexer = indexer

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """Mix tokens (B, L, hidden_size); `cache`, an `IndexedCache`, takes what all three keep."""
        position, compressed = position_of(cache), self.compressed(x)
        chosen = self.indexer(x, compressed, mask, cache)
        latent, keys = self.kept(x, position, cache)
        if chosen is not None:
            allowed = written_out(mask, x.shape[1], latent.shape[2])
            latent, keys, mask = (_taken if x.shape[1] == 1 else _marked)(chosen, latent, keys, allowed)
        return self.mix(compressed, position, latent, keys, mask)


Seen = tuple[mx.array, mx.array, mx.array]
"""Latent vectors (B, 1, K, rank), turned keys (B, 1, K, turned), and a mask (B, 1, L, K)."""


def _taken(chosen: mx.array, latent: mx.array, keys: mx.array, allowed: mx.array) -> Seen:
    """Take what one token chose, (B, 1, k), out of latent vectors, keys and mask."""
    rows = chosen[:, :, :, None]
    latent, keys = (
        mx.take_along_axis(each, mx.broadcast_to(rows, (*rows.shape[:3], each.shape[-1])), axis=2)
        for each in (latent, keys)
    )
    mask = mx.broadcast_to(allowed, (chosen.shape[0], 1, 1, allowed.shape[-1]))
    return latent, keys, mx.take_along_axis(mask, chosen[:, :, None], axis=-1)


def _marked(chosen: mx.array, latent: mx.array, keys: mx.array, allowed: mx.array) -> Seen:
    """Give latent vectors and keys as they are, with a mask of what tokens chose, (B, L, k)."""
    none = mx.zeros((chosen.shape[0], 1, chosen.shape[1], latent.shape[2]), mx.bool_)
    marked = mx.put_along_axis(none, chosen[:, None], mx.array(True), axis=-1)
    return latent, keys, marked & allowed


class IndexedBlock(Block):
    """A block whose cache has an index."""

    def make_cache(self) -> IndexedCache:
        """Give an empty cache."""
        return IndexedCache()


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    of_index = Rope(config.rope, fields.index_head_dim)

    def attention(shape: LatentShape, rope: Rope) -> SparseLatentAttention:
        return SparseLatentAttention(shape, rope, Indexer(fields, of_index))

    return build_latent(config, Scoring.of(fields), attention=attention, block=IndexedBlock)


DEEPSEEK_V32 = Architecture(
    name="deepseek_v32",
    model_types=("deepseek_v32",),
    class_names=("DeepseekV32ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 DeepseekV32ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    rewrite_rules=unpacked_halves,
    sharding=SHARDING,
)


class Plugin:
    """Offers DeepSeek-V3.2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer DeepSeek-V3.2."""
        return (DEEPSEEK_V32,)


PLUGIN = Plugin()
