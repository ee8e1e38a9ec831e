"""Granite 4: Mamba 2 or attention, then a feed-forward layer for all tokens and, unless there are none, experts.

Four numbers keep values in range, as in Granite 3: factors of embeddings, of what a layer adds and of attention's
scores, and a divisor of the tokens' scores. Attention has no position embeddings unless `position_embedding_type` says
"rope". Parameters are named as Transformers 5 names those of GraniteMoeHybridForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    layer_types_of,
    refuse_non_positive,
    refuse_too_many_chosen,
)
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.mamba2_fields import Mamba2Fields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, times
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mamba2 import GateThenNorm, Mamba2Mixer, Mamba2Shape
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import FusedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl

RECURRENT = "linear_attention"
# What the first files call the kinds of layers.
OLDER = {"mamba": RECURRENT, "attention": FULL}
ATTENTION, MAMBA = Parts(mlp="shared_mlp"), Parts(mixer="mamba", mlp="shared_mlp")


@dataclass(frozen=True, kw_only=True)
class Fields(Mamba2Fields):
    """What config.json says; defaults are the published ones."""

    embedding_multiplier: float = 1.0
    logits_scaling: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    shared_intermediate_size: int = 1024
    position_embedding_type: str | None = None


@dataclass(frozen=True)
class Config:
    """A config that fits together; `rope` None: tokens are told apart by what comes before alone."""

    fields: Fields
    attention: AttentionShape
    mamba: Mamba2Shape
    act: Activation
    layer_types: tuple[str, ...]
    rope: RopeConfig | None


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("shared_intermediate_size", "logits_scaling")
    fields.check_mixers()
    experts = fields.num_local_experts
    refuse_unless(experts >= 0, "num_local_experts", experts, "a number of experts, or 0 for none")
    if experts:
        refuse_non_positive({"num_local_experts": experts, "num_experts_per_tok": fields.num_experts_per_tok})
        refuse_too_many_chosen(fields.num_experts_per_tok, experts, "num_local_experts")
    listed = fields.layer_types and tuple(OLDER.get(each, each) for each in fields.layer_types)
    act, turns = activation(fields.hidden_act), fields.position_embedding_type == "rope"
    return Config(
        fields,
        AttentionShape.of(fields, scale=fields.attention_multiplier),
        Mamba2Shape.of(fields, act),
        act,
        layer_types_of(listed, fields.num_hidden_layers, RECURRENT, known=(RECURRENT, FULL)),
        read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL] if turns else None,
    )


class ExpertsBlock(MixerBlock):
    """A block that adds what experts, `block_sparse_moe`, make to what the layer for all tokens makes."""

    block_sparse_moe: SparseMlp

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size), normed -> what both make, the same shape."""
        return self.block_sparse_moe(x) + super().fed(x)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    rope = None if config.rope is None else Rope(config.rope, config.attention.head_dim)
    decoder = Decoder(
        fields.vocab_size,
        fields.hidden_size,
        rms_norm(fields.rms_norm_eps)(fields.hidden_size),
        [_block(config, rope, layer_type) for layer_type in config.layer_types],
        fields.embedding_multiplier,
    )
    return CausalLM(decoder, fields.tie_word_embeddings, times(1 / fields.logits_scaling))


def _block(config: Config, rope: Rope | None, layer_type: str) -> MixerBlock:
    fields, eps = config.fields, config.fields.rms_norm_eps
    kind = ExpertsBlock if fields.num_local_experts else MixerBlock
    names = ("input_linear", "output_linear")
    attends, shape = layer_type == FULL, config.mamba
    block = kind(
        Attention(config.attention, rope)
        if attends
        else Mamba2Mixer(shape, GateThenNorm(shape.channels, shape.groups, eps)),
        FusedMlp(fields.hidden_size, fields.shared_intermediate_size, config.act, names=names),
        fields.hidden_size,
        rms_norm(eps),
        ATTENTION if attends else MAMBA,
        cache=None if attends else StateCache,
        residual=fields.residual_multiplier,
    )
    if isinstance(block, ExpertsBlock):
        experts = Experts(fields.num_local_experts, fields.hidden_size, fields.intermediate_size, config.act)
        block.block_sparse_moe = SparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok, gate="router")
    return block


GRANITEMOEHYBRID = Architecture(
    name="granitemoehybrid",
    model_types=("granitemoehybrid",),
    class_names=("GraniteMoeHybridForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GraniteMoeHybridForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        **VOCABULARY,
        **HEADS,
        r"shared_mlp\.input_linear\.": "packed",
        r"shared_mlp\.output_linear\.(weight|scales|biases)$": "row",
        **EXPERTS,
    },
)


class Plugin:
    """Offers Granite 4."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Granite 4."""
        return (GRANITEMOEHYBRID,)


PLUGIN = Plugin()
