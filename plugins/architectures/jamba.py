"""Jamba (arXiv 2403.19887): Mamba in most layers, attention in one of a few, experts in every other.

What step sizes come from, and what is let in and out, is normed with weights. There are no position embeddings. The
weights of the chosen experts are their shares among all. Parameters are named as Transformers 5 names those of
JambaForCausalLM, the experts stacked. mlx-lm makes the weights of the chosen experts sum to 1, which is another model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mamba import MambaMixer, MambaShape, rank_of
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.routing import softmax_over_all
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl

ATTENTION = Parts(mlp="feed_forward", mlp_norm="pre_ff_layernorm")
MAMBA = Parts(mixer="mamba", mlp="feed_forward", mlp_norm="pre_ff_layernorm")


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 65536
    hidden_size: int = 4096
    intermediate_size: int = 14336
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 262144
    num_experts: int = 16
    num_experts_per_tok: int = 2
    expert_layer_period: int = 2
    expert_layer_offset: int = 1
    attn_layer_period: int = 8
    attn_layer_offset: int = 4
    mamba_d_state: int = 16
    mamba_d_conv: int = 4
    mamba_expand: int = 2
    mamba_dt_rank: int | str = "auto"
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False

    def attends(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has attention."""
        return layer % self.attn_layer_period == self.attn_layer_offset

    def is_sparse(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has experts."""
        return self.num_experts > 1 and layer % self.expert_layer_period == self.expert_layer_offset


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    mamba: MambaShape
    act: Activation


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content, "expert_layer_period", "attn_layer_period")
    refuse_non_positive({name: getattr(fields, name) for name in ("mamba_d_state", "mamba_d_conv", "mamba_expand")})
    for kind in ("expert", "attn"):
        offset, period = (getattr(fields, f"{kind}_layer_{part}") for part in ("offset", "period"))
        refuse_unless(
            0 <= offset < period, f"{kind}_layer_offset", offset, f"0 or more, less than {period}, the period"
        )
    act = activation(fields.hidden_act)
    mamba = MambaShape(
        fields.hidden_size,
        fields.mamba_expand * fields.hidden_size,
        fields.mamba_d_state,
        rank_of(fields.mamba_dt_rank, fields.hidden_size, "mamba_dt_rank"),
        fields.mamba_d_conv,
        act,
        fields.mamba_conv_bias,
        fields.mamba_proj_bias,
    )
    return Config(fields, AttentionShape.of(fields, bias=False, out_bias=False), mamba, act)


class NormedMixer(MambaMixer):
    """A mixer with norms of what comes from `x_proj`: `dt_layernorm`, `b_layernorm`, `c_layernorm`."""

    def __init__(self, shape: MambaShape, eps: float) -> None:
        super().__init__(shape)
        self.dt_layernorm = nn.RMSNorm(shape.rank, eps)
        self.b_layernorm = nn.RMSNorm(shape.states, eps)
        self.c_layernorm = nn.RMSNorm(shape.states, eps)

    def normed(self, dt: mx.array, b: mx.array, c: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm each, (B, L, size)."""
        return self.dt_layernorm(dt), self.b_layernorm(b), self.c_layernorm(c)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [_block(config, layer) for layer in range(fields.num_hidden_layers)]
    names = Names(norm="final_layernorm")
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, names=names)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, layer: int) -> MixerBlock:
    fields = config.fields
    norm, mlp = rms_norm(fields.rms_norm_eps), _mlp(config, layer)
    if fields.attends(layer):
        return MixerBlock(Attention(config.attention, None), mlp, fields.hidden_size, norm, ATTENTION)
    mixer = NormedMixer(config.mamba, fields.rms_norm_eps)
    return MixerBlock(mixer, mlp, fields.hidden_size, norm, MAMBA, cache=StateCache)


def _mlp(config: Config, layer: int) -> nn.Module:
    fields = config.fields
    if not fields.is_sparse(layer):
        return GatedMlp(fields.hidden_size, fields.intermediate_size, config.act)
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.act)
    return SparseMlp(experts, softmax_over_all, fields.num_experts_per_tok, gate="router")


JAMBA = Architecture(
    name="jamba",
    model_types=("jamba",),
    class_names=("JambaForCausalLM",),
    task="generate",
    verified="Transformers 5.24 JambaForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # The norms in a mixer need all that comes from its channels: it is whole on each rank.
    sharding={**VOCABULARY, **HEADS, **gated("feed_forward"), **EXPERTS},
)


class Plugin:
    """Offers Jamba."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Jamba."""
        return (JAMBA,)


PLUGIN = Plugin()
