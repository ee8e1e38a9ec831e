"""LFM2 (arXiv 2511.23404): gated short convolutions in most layers, attention in some; with experts or without.

A layer without attention makes three parts of its input, multiplies the third by the first, filters the product over
the last `conv_L_cache` tokens, and multiplies by the second. With experts, the first `num_dense_layers` have none;
a router chooses by the logistic function of its scores plus `expert_bias`, and weighs by the former alone.
Parameters are named as Transformers 5 names those of Lfm2ForCausalLM and Lfm2MoeForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    WIDEST,
    layer_types_of,
    refuse_non_positive_where_given,
    refuse_too_many_chosen,
)
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import silu
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.cuts import EXPERTS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.masks import Mask
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import best, normalised, softmax_over_all
from weightloom.plugins.layers.state import State, StateCache
from weightloom.plugins.specs import hookimpl

CONV = "conv"
NAMES = Names(norm="embedding_norm")


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says of both; defaults are the published ones."""

    vocab_size: int = 65536
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 128_000
    norm_eps: float = 1e-5
    tie_word_embeddings: bool = True
    tie_embedding: bool | None = None
    conv_bias: bool = False
    conv_L_cache: int = 3  # noqa: N815

    @property
    def tied(self) -> bool:
        """Whether embeddings score the tokens; the older field decides where both are there."""
        return self.tie_word_embeddings if self.tie_embedding is None else self.tie_embedding


@dataclass(frozen=True, kw_only=True)
class DenseFields(Fields):
    """What config.json says of LFM2 without experts."""

    hidden_size: int = 2560
    intermediate_size: int = 12288
    block_ff_dim: int | None = None
    block_auto_adjust_ff_dim: bool = True
    block_multiple_of: int = 256
    block_ffn_dim_multiplier: float | None = 1.0
    full_attn_idxs: tuple[int, ...] | None = None

    def listed(self) -> tuple[str, ...] | None:
        """Give the layers' types, as `layer_types` or the older `full_attn_idxs` has them."""
        if self.layer_types is not None or self.full_attn_idxs is None:
            return self.layer_types
        return tuple(FULL if layer in self.full_attn_idxs else CONV for layer in range(self.num_hidden_layers))

    def inner(self) -> int:
        """Give the width of the feed-forward layers: two thirds, times a factor, up to a multiple; or as it stands."""
        wide = self.intermediate_size if self.block_ff_dim is None else self.block_ff_dim
        if not self.block_auto_adjust_ff_dim:
            return wide
        narrow = int(2 * wide / 3)
        if self.block_ffn_dim_multiplier is None:
            return narrow
        return -(-int(self.block_ffn_dim_multiplier * narrow) // self.block_multiple_of) * self.block_multiple_of


@dataclass(frozen=True, kw_only=True)
class SparseFields(Fields):
    """What config.json says of LFM2 with experts."""

    hidden_size: int = 2048
    intermediate_size: int = 7168
    moe_intermediate_size: int = 1792
    num_dense_layers: int = 2
    num_experts: int = 32
    num_experts_per_tok: int = 4
    use_expert_bias: bool = True
    norm_topk_prob: bool = True
    routed_scaling_factor: float = 1.0


@dataclass(frozen=True)
class Config:
    """A config that fits together: `types` has an entry a layer, `inner` is the width of layers without experts."""

    fields: Fields
    attention: AttentionShape
    types: tuple[str, ...]
    inner: int
    rope: RopeConfig
    experts: SparseFields | None = None


def read_dense(content: Mapping[str, Any]) -> Config:
    """Read an LFM2's config.json; raises ConfigError naming the field that is off."""
    fields = read(DenseFields, content)
    fields.check("norm_eps", "conv_L_cache", "block_multiple_of")
    given = {"block_ff_dim": fields.block_ff_dim, "block_ffn_dim_multiplier": fields.block_ffn_dim_multiplier}
    refuse_non_positive_where_given(given)
    inner, most = fields.inner(), 8 * WIDEST
    refuse_unless(
        inner <= most, "block_ffn_dim_multiplier", fields.block_ffn_dim_multiplier, f"a width of {most} at most"
    )
    return _config(content, fields, fields.listed(), inner)


def read_sparse(content: Mapping[str, Any]) -> Config:
    """Read the config.json of an LFM2 with experts; raises ConfigError naming the field that is off."""
    fields = read(SparseFields, content)
    fields.check("norm_eps", "conv_L_cache", "moe_intermediate_size", "num_experts", "num_experts_per_tok")
    refuse_too_many_chosen(fields.num_experts_per_tok, fields.num_experts, "num_experts")
    return _config(content, fields, fields.layer_types, fields.intermediate_size, fields)


def _config(
    content: Mapping[str, Any],
    fields: Fields,
    listed: tuple[str, ...] | None,
    inner: int,
    experts: SparseFields | None = None,
) -> Config:
    return Config(
        fields,
        AttentionShape.of(fields, norm_eps=fields.norm_eps),
        layer_types_of(listed, fields.num_hidden_layers, FULL, known=(FULL, CONV)),
        inner,
        read_rope(content, fields.head_size, fields.max_position_embeddings, default_theta=1e6)[FULL],
        experts,
    )


class NamedAttention(Attention):
    """Attention whose parts are called `out_proj`, `q_layernorm`, `k_layernorm`."""

    def __init__(self, shape: AttentionShape, rope: Rope) -> None:
        super().__init__(shape, rope)
        self.out_proj = self.pop("o_proj")
        self.q_layernorm, self.k_layernorm = self.pop("q_norm"), self.pop("k_norm")

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm queries and keys, (B, L, heads, head_dim) each."""
        return self.q_layernorm(queries), self.k_layernorm(keys), values

    def out(self, mixed: mx.array, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.out_proj(mixed)
        return made


class GatedConvolution(nn.Module):
    """out(second * filtered(first * third)) of three parts of `in_proj`; parameters `in_proj`, `conv`, `out_proj`."""

    def __init__(self, size: int, width: int, bias: bool) -> None:
        super().__init__()
        self.in_proj = nn.Linear(size, 3 * size, bias=bias)
        self.conv = CausalConv1d(size, width, bias)
        self.out_proj = nn.Linear(size, size, bias=bias)

    def __call__(self, x: mx.array, mask: Mask, state: State) -> mx.array:
        """Mix tokens (B, L, size); `state` takes those that the next ones see."""
        first, second, third = mx.split(self.in_proj(x), 3, axis=-1)
        mixed: mx.array = self.out_proj(second * self.conv(first * third, state))
        state.put(x.shape[1])
        return mixed


class BiasedSparseMlp(SparseMlp):
    """Experts chosen by logistic scores plus `expert_bias` (E,), if there is one."""

    def __init__(self, fields: SparseFields) -> None:
        experts = Experts(fields.num_experts, fields.hidden_size, fields.moe_intermediate_size, silu)
        super().__init__(experts, softmax_over_all, fields.num_experts_per_tok)
        self._factor = fields.routed_scaling_factor
        self._normalised = fields.norm_topk_prob
        if fields.use_expert_bias:
            self.expert_bias = mx.zeros((fields.num_experts,))

    def choose(self, tokens: mx.array) -> tuple[mx.array, mx.array]:
        """Tokens (N, H) -> the experts of each, (N, k) int, and their weights, (N, k) float32."""
        shares = mx.sigmoid(self.scores(tokens).astype(mx.float32))
        chosen = best(shares + self.expert_bias if "expert_bias" in self else shares, self._k)
        weights = mx.take_along_axis(shares, chosen, axis=-1)
        return chosen, (normalised(weights, 1e-6) if self._normalised else weights) * self._factor


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, rms_norm(config.fields.norm_eps)
    rope = Rope(config.rope, config.attention.head_dim)
    blocks = [_block(config, layer, rope) for layer in range(fields.num_hidden_layers)]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, names=NAMES)
    return CausalLM(decoder, fields.tied)


def _block(config: Config, layer: int, rope: Rope) -> MixerBlock:
    fields, norm = config.fields, rms_norm(config.fields.norm_eps)
    sparse = config.experts is not None and layer >= config.experts.num_dense_layers
    mlp = (
        BiasedSparseMlp(config.experts)
        if config.experts and sparse
        else GatedMlp(fields.hidden_size, config.inner, silu, names=("w1", "w3", "w2"))
    )
    attends = config.types[layer] == FULL
    parts = Parts("self_attn" if attends else "conv", "operator_norm", "feed_forward", "ffn_norm")
    if attends:
        return MixerBlock(NamedAttention(config.attention, rope), mlp, fields.hidden_size, norm, parts)
    mixer = GatedConvolution(fields.hidden_size, fields.conv_L_cache, fields.conv_bias)
    return MixerBlock(mixer, mlp, fields.hidden_size, norm, parts, cache=StateCache)


SHARDING = {
    **VOCABULARY,
    r"self_attn\.[qkv]_proj\.": "column",
    r"self_attn\.out_proj\.(weight|scales|biases)$": "row",
    r"feed_forward\.w[13]\.": "column",
    r"feed_forward\.w2\.(weight|scales|biases)$": "row",
}

LFM2 = Architecture(
    name="lfm2",
    model_types=("lfm2",),
    class_names=("Lfm2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Lfm2ForCausalLM",
    by_request=("rerank",),
    read_config=read_dense,
    build=build,
    fields=DenseFields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)
LFM2_MOE = Architecture(
    name="lfm2_moe",
    model_types=("lfm2_moe",),
    class_names=("Lfm2MoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Lfm2MoeForCausalLM",
    by_request=("rerank",),
    read_config=read_sparse,
    build=build,
    fields=SparseFields,
    adapters=("lora", "dora"),
    sharding={**SHARDING, **EXPERTS},
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer LFM2 and LFM2 with experts."""
        return (LFM2, LFM2_MOE)


PLUGIN = Plugin()
