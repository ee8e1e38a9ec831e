"""Qwen3.5's text models: gated delta rules in most layers (arXiv 2412.06464), gated attention in some; experts or none.

They are Qwen3-Next's, with a matrix for each thing that linear attention projects to. With experts, all layers have
them, and a shared one. Positions of text are the same in each of the sections that pictures are placed by, so that
`mrope_section` and `mrope_interleaved` change nothing here.
Parameters are named as Transformers 5 names those of Qwen3_5ForCausalLM and Qwen3_5MoeForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.linear_fields import LinearFields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import DENSE, EXPERTS, HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.delta_net import DeltaShape, NormedDeltaNet, Projected
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.gated_attention import GatedAttention
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layers.shared_experts import GatedSharedSparseMlp
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(LinearFields):
    """What config.json says of those without experts; defaults are the published ones."""

    vocab_size: int = 248320
    hidden_size: int = 4096
    intermediate_size: int = 12288
    num_hidden_layers: int = 32
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    max_position_embeddings: int = 32768


@dataclass(frozen=True, kw_only=True)
class SparseFields(Fields, ExpertFields):
    """What config.json says of those with experts; `intermediate_size` is of no layer."""

    hidden_size: int = 2048
    num_hidden_layers: int = 40
    num_key_value_heads: int | None = 2
    num_experts: int = 256
    num_experts_per_tok: int = 8
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int = 512


@dataclass(frozen=True)
class Config:
    """A config that fits together: `types` has an entry a layer, `experts` says that all layers have experts."""

    fields: Fields
    attention: AttentionShape
    delta: DeltaShape
    act: Activation
    types: tuple[str, ...]
    rope: RopeConfig
    experts: SparseFields | None = None


def read_dense(content: Mapping[str, Any]) -> Config:
    """Read the config.json of one without experts; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    return _config(content, fields)


def read_sparse(content: Mapping[str, Any]) -> Config:
    """Read the config.json of one with experts; raises ConfigError naming the field that is off."""
    fields = read_experts(SparseFields, content, "moe_intermediate_size", "shared_expert_intermediate_size")
    return _config(content, fields, fields)


def _config(content: Mapping[str, Any], fields: Fields, experts: SparseFields | None = None) -> Config:
    fields.check_linear()
    return Config(
        fields,
        AttentionShape.of(fields),
        DeltaShape.of(fields),
        activation(fields.hidden_act),
        fields.types(),
        read_rope(content, fields.head_size, fields.max_position_embeddings, default_part=0.25)[FULL],
        experts,
    )


class PlainDeltaNet(NormedDeltaNet):
    """A delta net with a matrix for each: queries, keys and values; gates; rates; what decays are made of."""

    def __init__(self, shape: DeltaShape, act: Activation, eps: float) -> None:
        widths = (2 * shape.keys + shape.values, shape.values, shape.value_heads, shape.value_heads)
        names = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")
        super().__init__(shape, act, eps, dict(zip(names, widths, strict=True)))

    def project(self, x: mx.array) -> Projected:
        """(B, L, hidden_size) -> what the rule works on."""
        return Projected(*self.projected(x))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, zero_centred_norm(config.fields.rms_norm_eps)
    rope = Rope(config.rope, config.attention.head_dim)
    blocks = [_block(config, layer_type, rope) for layer_type in config.types]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, layer_type: str, rope: Rope) -> MixerBlock:
    fields, norm = config.fields, zero_centred_norm(config.fields.rms_norm_eps)
    mlp = _mlp(config)
    if layer_type == FULL:
        return MixerBlock(GatedAttention(config.attention, rope, norm), mlp, fields.hidden_size, norm, Parts())
    mixer = PlainDeltaNet(config.delta, config.act, fields.rms_norm_eps)
    return MixerBlock(mixer, mlp, fields.hidden_size, norm, Parts("linear_attn"), cache=StateCache)


def _mlp(config: Config) -> nn.Module:
    fields = config.experts
    if fields is None:
        return GatedMlp(config.fields.hidden_size, config.fields.intermediate_size, config.act)
    experts = Experts(fields.num_experts, fields.hidden_size, fields.moe_intermediate_size, config.act)
    shared = GatedMlp(fields.hidden_size, fields.shared_expert_intermediate_size, config.act)
    return GatedSharedSparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok, shared, "shared_expert")


QWEN3_5 = Architecture(
    name="qwen3_5_text",
    model_types=("qwen3_5_text",),
    class_names=("Qwen3_5ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen3_5ForCausalLM",
    by_request=("rerank",),
    read_config=read_dense,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)
QWEN3_5_MOE = Architecture(
    name="qwen3_5_moe_text",
    model_types=("qwen3_5_moe_text",),
    class_names=("Qwen3_5MoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen3_5MoeForCausalLM",
    by_request=("rerank",),
    read_config=read_sparse,
    build=build,
    fields=SparseFields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **gated("shared_expert"), **EXPERTS},
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Qwen3.5's text models without experts and with them."""
        return (QWEN3_5, QWEN3_5_MOE)


PLUGIN = Plugin()
