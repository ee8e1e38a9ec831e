"""Llama 4, its text model (Llama 4 Scout and Maverick; the model card is the source): attention within chunks, experts.

Layers that turn queries and keys see their own chunk alone; every fourth does not turn them, and sees all, with queries
that grow with their position (arXiv 2501.19399). Neighbours of a head turn against each other; what has turned is
divided by its root mean square. Experts get tokens times the logistic function of their score, beside a layer that all
tokens go through. Parameters are named as Transformers 5 names those of Llama4ForCausalLM, experts with rows first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, layer_types_of, refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.masks import Chunked
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import UnweightedNorm, rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import best
from weightloom.plugins.layers.shared_experts import SharedSparseMlp
from weightloom.plugins.layouts.rows_first import rows_first
from weightloom.plugins.specs import hookimpl

CHUNKED, MLP = "chunked_attention", "feed_forward"


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones. A 0 in `no_rope_layers` is a layer that does not turn."""

    num_experts: int = 16
    num_experts_per_tok: int = 1
    intermediate_size: int = 8192
    intermediate_size_mlp: int = 16384
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    moe_layers: tuple[int, ...] | None = None
    interleave_moe_layer_step: int = 1
    use_qk_norm: bool = True
    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int = 4
    attention_chunk_size: int | None = 8192
    attn_temperature_tuning: bool = True
    floor_scale: int = 8192
    attn_scale: float = 0.1

    def is_sparse(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has experts."""
        if self.moe_layers is not None:
            return layer in self.moe_layers
        return (layer + 1) % self.interleave_moe_layer_step == 0

    def turns(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, turns queries and keys."""
        if self.no_rope_layers:
            return self.no_rope_layers[layer] != 0
        return (layer + 1) % self.no_rope_layer_interval != 0


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    layer_types: tuple[str, ...]
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    steps = ("intermediate_size_mlp", "interleave_moe_layer_step", "no_rope_layer_interval", "floor_scale")
    fields = read_experts(Fields, content, *steps)
    count, size, turning = fields.num_hidden_layers, fields.attention_chunk_size, fields.no_rope_layers
    listed = f"a list of {len(turning or ())}"
    refuse_unless(
        not turning or len(turning) >= count, "no_rope_layers", listed, f"num_hidden_layers, {count}, entries"
    )
    by_turn = tuple(CHUNKED if fields.turns(layer) and size is not None else FULL for layer in range(count))
    types = layer_types_of(
        by_turn if fields.layer_types is None else fields.layer_types, count, FULL, None, (FULL, CHUNKED)
    )
    if CHUNKED in types:
        refuse_unless(
            size is not None, "attention_chunk_size", size, "a positive number, since there are chunked layers"
        )
        refuse_non_positive({"attention_chunk_size": size or 0})
    return Config(
        fields,
        AttentionShape.of(fields),
        activation(fields.hidden_act),
        types,
        read_rope(content, fields.head_size, fields.max_position_embeddings, 500000.0)[FULL],
    )


class TurningAttention(Attention):
    """Attention whose queries and keys are divided by their root mean square after they have turned."""

    def __init__(self, shape: AttentionShape, rope: Rope, eps: float) -> None:
        super().__init__(shape, rope)
        self._unit = UnweightedNorm(eps)

    def placed(self, queries: mx.array, keys: mx.array, position: int | mx.array) -> tuple[mx.array, mx.array]:
        """Turn and norm queries and keys, (B, heads, L, head_dim) each."""
        queries, keys = super().placed(queries, keys, position)
        return self._unit(queries), self._unit(keys)


class TemperedAttention(Attention):
    """Attention that turns nothing; queries grow with the logarithm of their position, in steps of `floor`."""

    def __init__(self, shape: AttentionShape, floor: int, strength: float) -> None:
        super().__init__(shape, None)
        self._floor, self._strength = floor, strength

    def placed(self, queries: mx.array, keys: mx.array, position: int | mx.array) -> tuple[mx.array, mx.array]:
        """Scale queries (B, heads, L, head_dim), the first at `position`."""
        first = mx.array(position).reshape(-1, 1, 1, 1)
        steps = (first + mx.arange(1, queries.shape[2] + 1)[:, None]) // self._floor
        # Tokens that fill up a row have positions below 0.
        factors = mx.log1p(mx.maximum(steps, 0).astype(mx.float32)) * self._strength + 1
        return (queries * factors).astype(queries.dtype), keys


class InputWeightedMlp(SharedSparseMlp):
    """Experts that get each token times its weight, and a shared expert."""

    def mixed(self, tokens: mx.array, chosen: mx.array, weights: mx.array) -> mx.array:
        """Tokens (N, H), their experts and weights (N, k) -> the sum of what the chosen experts make, (N, H)."""
        scaled = (tokens[:, None] * weights[..., None]).astype(tokens.dtype).flatten(0, 1)
        each = super().mixed(scaled, chosen.reshape(-1, 1), mx.ones((scaled.shape[0], 1)))
        return each.reshape(*chosen.shape, -1).sum(axis=1)


def logistic(scores: mx.array, k: int) -> tuple[mx.array, mx.array]:
    """Choose the k best; their weights are the logistic function of their scores."""
    chosen = best(scores, k)
    return chosen, mx.sigmoid(mx.take_along_axis(scores.astype(mx.float32), chosen, axis=-1))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim, interleaved=True)
    norm = rms_norm(fields.rms_norm_eps)
    chunk = None if fields.attention_chunk_size is None else Chunked(fields.attention_chunk_size)
    blocks = [
        Block(
            _attention(config, layer, rope),
            _feed_forward(config, layer),
            fields.hidden_size,
            norm,
            chunk if layer_type == CHUNKED else None,
            mlp_name=MLP,
        )
        for layer, layer_type in enumerate(config.layer_types)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _attention(config: Config, layer: int, rope: Rope) -> Attention:
    fields = config.fields
    if fields.turns(layer):
        made = TurningAttention(config.attention, rope, fields.rms_norm_eps)
        return made if fields.use_qk_norm else Attention(config.attention, rope)
    strength = fields.attn_scale if fields.attn_temperature_tuning else 0.0
    return TemperedAttention(config.attention, fields.floor_scale, strength)


def _feed_forward(config: Config, layer: int) -> nn.Module:
    fields = config.fields
    if not fields.is_sparse(layer):
        return GatedMlp(fields.hidden_size, fields.intermediate_size_mlp, config.act)
    sizes = (fields.hidden_size, fields.intermediate_size, config.act)
    experts, shared = Experts(fields.num_experts, *sizes), GatedMlp(*sizes)
    return InputWeightedMlp(experts, logistic, fields.num_experts_per_tok, shared, "shared_expert", gate="router")


LLAMA4_TEXT = Architecture(
    name="llama4_text",
    model_types=("llama4_text",),
    class_names=("Llama4ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Llama4ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    rewrite_rules=rows_first,
    sharding={**VOCABULARY, **HEADS, **gated("feed_forward", "shared_expert"), **EXPERTS},
)


class Plugin:
    """Offers Llama 4's text model."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Llama 4's text model."""
        return (LLAMA4_TEXT,)


PLUGIN = Plugin()
