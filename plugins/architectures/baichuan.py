"""Baichuan and Baichuan 2 (arXiv 2309.10305): Llama's layers with queries, keys and values from one matrix, `W_pack`.

The 7B models turn queries and keys; the 13B models, whose configs have no `max_position_embeddings`, have ALiBi.
Baichuan 2's head counts as if each of its rows were of length 1; no field says so, and what tells it is its vocabulary.
The field `norm_head`, which published configs lack, decides where that is another.
Transformers has no class for it: parameters are named as in the published model. The 7B models are compared with
Transformers' Llama, its matrices joined and its head normed; ALiBi with its formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attending import attend
from weightloom.plugins.layers.attention import AttentionShape, FusedAttention
from weightloom.plugins.layers.cuts import GATED
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.norm_head import RowNormHeadLM
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl

_VOCABULARY_OF_BAICHUAN_2 = 125696


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. `norm_head` None: by the vocabulary."""

    max_position_embeddings: int = 4096
    model_max_length: int = 4096
    norm_head: bool | None = None


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    dense: DenseConfig
    turns: bool
    norm_head: bool


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    turns = content.get("max_position_embeddings") is not None
    fields = read(Fields, content if turns else {k: v for k, v in content.items() if k != "max_position_embeddings"})
    fields.check()
    refuse_non_positive({"model_max_length": fields.model_max_length})
    new = fields.vocab_size == _VOCABULARY_OF_BAICHUAN_2 if fields.norm_head is None else fields.norm_head
    refuse_unless(not (new and fields.tie_word_embeddings), "tie_word_embeddings", True, "false with a normed head")
    sized = fields if turns else replace(fields, max_position_embeddings=fields.model_max_length)
    return Config(DenseConfig.of(sized, content, (FULL,) * fields.num_hidden_layers), turns, new)


class BaichuanAttention(FusedAttention):
    """Attention with q, k and v in one matrix `W_pack`."""

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the two matrices."""
        wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.W_pack = nn.Linear(shape.hidden_size, wide + 2 * narrow, bias=shape.bias)
        self.o_proj = nn.Linear(wide, shape.hidden_size, bias=shape.out_bias)

    def project(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and values, (B, L, heads, head_dim) each."""
        return self.parts(self.W_pack(x))


def slopes(heads: int) -> list[float]:
    """Give the slope of each head: powers of 2 ** (-8 / n) for n heads, a power of two.

    Other numbers have those of the largest power of two below, and then each other one of twice as many.
    """
    power = 1 << (heads.bit_length() - 1)
    plain = [2.0 ** (-8.0 * (number + 1) / power) for number in range(power)]
    finer = [2.0 ** (-8.0 * (2 * number + 1) / (2 * power)) for number in range(heads - power)]
    return [*plain, *finer]


def with_alibi(mask: Mask, length: int, count: int, by_head: mx.array, dtype: mx.Dtype) -> mx.array:
    """Give what is added to scores, (1 or B, heads, L, K) `dtype`, for the last `length` of `count` positions.

    `mask` is as attention gets it, `by_head` (heads,) the slopes. What is not seen gets the lowest number.
    """
    distance = mx.arange(count)[None, :] - mx.arange(count - length, count)[:, None]
    bias = by_head[:, None, None] * distance
    seen = distance <= 0 if mask is None or isinstance(mask, str) else mask
    return mx.where(seen, bias[None], mx.finfo(dtype).min).astype(dtype)


class AlibiAttention(BaichuanAttention):
    """The same with ALiBi (arXiv 2108.12409): what lies further back scores less, each head by a slope of its own."""

    def __init__(self, shape: AttentionShape, rope: Rope | None) -> None:
        super().__init__(shape, rope)
        self._slopes = mx.array(slopes(shape.heads))

    def mixed(self, queries: mx.array, keys: mx.array, values: mx.array, mask: Mask) -> mx.array:
        """Mix values, (B, heads, L, head_dim)."""
        added = with_alibi(mask, queries.shape[2], keys.shape[2], self._slopes, queries.dtype)
        return attend(queries, keys, values, self.scale, added)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(
        config.dense,
        BaichuanAttention if config.turns else AlibiAttention,
        turns=[config.turns] * config.dense.fields.num_hidden_layers,
        model=RowNormHeadLM if config.norm_head else CausalLM,
    )


BAICHUAN = Architecture(
    name="baichuan",
    model_types=("baichuan",),
    class_names=("BaichuanForCausalLM", "BaiChuanForCausalLM"),
    task="generate",
    verified="Transformers 5.24 LlamaForCausalLM, its matrices joined; formulas of arXiv 2108.12409",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # The head is whole on each rank, for the lengths of its rows; and so is W_pack, three parts in one.
    sharding={r"^model\.embed_tokens\.": "vocab", **GATED},
)


class Plugin:
    """Offers Baichuan."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Baichuan."""
        return (BAICHUAN,)


PLUGIN = Plugin()
