"""Qwen3-Next: gated delta rules in most layers (arXiv 2412.06464), gated attention in some; experts and a shared one.

Norms scale by one plus their weight, but that of linear attention. Its queries, keys, values and gates come from one
matrix, sorted by heads of keys, as do what rates and decays are made of. A layer has experts if it is not in
`mlp_only_layers` and its number, from 1, divides by `decoder_sparse_step`.
Parameters are named as Transformers 5 names those of Qwen3NextForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.expert_fields import SharedExpertFields, read_experts
from weightloom.plugins.configs.linear_fields import LinearFields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.delta_net import DeltaShape, NormedDeltaNet, Projected
from weightloom.plugins.layers.gated_attention import GatedAttention
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.some_experts import some_experts_and_shared
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(LinearFields, SharedExpertFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 48
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 2
    head_dim: int | None = 256
    max_position_embeddings: int = 32768
    num_experts: int = 512
    num_experts_per_tok: int = 10
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int = 512
    norm_topk_prob: bool = True


@dataclass(frozen=True)
class Config:
    """A config that fits together; `types` has an entry a layer."""

    fields: Fields
    attention: AttentionShape
    delta: DeltaShape
    act: Activation
    types: tuple[str, ...]
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    more = ("moe_intermediate_size", "shared_expert_intermediate_size", "decoder_sparse_step")
    fields = read_experts(Fields, content, *more)
    fields.check_linear()
    return Config(
        fields,
        AttentionShape.of(fields),
        DeltaShape.of(fields),
        activation(fields.hidden_act),
        fields.types(),
        read_rope(content, fields.head_size, fields.max_position_embeddings, default_part=0.25)[FULL],
    )


class SortedDeltaNet(NormedDeltaNet):
    """A delta net whose two projections are sorted by heads of keys, each with what belongs to its values' heads."""

    def __init__(self, shape: DeltaShape, act: Activation, eps: float) -> None:
        inputs = {"in_proj_qkvz": 2 * (shape.keys + shape.values), "in_proj_ba": 2 * shape.value_heads}
        super().__init__(shape, act, eps, inputs)

    def project(self, x: mx.array) -> Projected:
        """(B, L, hidden_size) -> what the rule works on, sorted by kind."""
        shape, by_head = self._shape, (*x.shape[:2], self._shape.key_heads, -1)
        inner = shape.values // shape.key_heads
        ends = [shape.key_dim, 2 * shape.key_dim, 2 * shape.key_dim + inner]
        first, second = (each.reshape(by_head) for each in self.projected(x))
        *mixed, gate = mx.split(first, ends, axis=-1)
        rate, step = mx.split(second, 2, axis=-1)
        joined = mx.concatenate([each.flatten(2) for each in mixed], axis=-1)
        return Projected(joined, gate.flatten(2), rate.flatten(2), step.flatten(2))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, zero_centred_norm(config.fields.rms_norm_eps)
    rope = Rope(config.rope, config.attention.head_dim)
    blocks = [_block(config, layer, rope) for layer in range(fields.num_hidden_layers)]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, layer: int, rope: Rope) -> MixerBlock:
    fields, norm = config.fields, zero_centred_norm(config.fields.rms_norm_eps)
    mlp = some_experts_and_shared(fields, layer, config.act)
    if config.types[layer] == FULL:
        return MixerBlock(GatedAttention(config.attention, rope, norm), mlp, fields.hidden_size, norm, Parts())
    mixer = SortedDeltaNet(config.delta, config.act, fields.rms_norm_eps)
    return MixerBlock(mixer, mlp, fields.hidden_size, norm, Parts("linear_attn"), cache=StateCache)


QWEN3_NEXT = Architecture(
    name="qwen3_next",
    model_types=("qwen3_next",),
    class_names=("Qwen3NextForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen3NextForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **gated("mlp", "shared_expert"), **EXPERTS},
)


class Plugin:
    """Offers Qwen3-Next."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Qwen3-Next."""
        return (QWEN3_NEXT,)


PLUGIN = Plugin()
