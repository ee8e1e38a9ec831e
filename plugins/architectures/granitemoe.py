"""Granite with experts (PowerMoE, arXiv 2408.13359; Granite 3), with or without a shared layer beside them.

Four numbers keep values in range: factors of embeddings, of what a layer adds and of attention's scores, and a divisor
of the tokens' scores. The two families differ in `shared_mlp` alone, which granitemoeshared has where
`shared_intermediate_size` is not 0. Parameters are named as Transformers 5 names those of GraniteMoeForCausalLM and
GraniteMoeSharedForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, WIDEST, refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, times
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mlp import FusedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.specs import hookimpl

MLP = "block_sparse_moe"


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int = 8
    num_experts_per_tok: int = 2
    embedding_multiplier: float = 1.0
    logits_scaling: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0

    @property
    def shared_size(self) -> int:
        """The inner size of the layer for all tokens; 0 for none."""
        return 0


@dataclass(frozen=True, kw_only=True)
class SharedFields(Fields):
    """The same, and how large the layer for all tokens is."""

    shared_intermediate_size: int = 0

    @property
    def shared_size(self) -> int:
        """The inner size of the layer for all tokens; 0 for none."""
        return self.shared_intermediate_size


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig


def read_granitemoe(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    return _checked(content, read_experts(Fields, content))


def read_granitemoeshared(content: Mapping[str, Any]) -> Config:
    """Read config.json's content of one with a shared layer; raises ConfigError naming the field that is off."""
    fields = read_experts(SharedFields, content)
    size = fields.shared_size
    refuse_unless(0 <= size <= WIDEST, "shared_intermediate_size", size, "a size, or 0 for no shared layer")
    return _checked(content, fields)


def _checked(content: Mapping[str, Any], fields: Fields) -> Config:
    refuse_non_positive({"logits_scaling": fields.logits_scaling})
    return Config(
        fields,
        AttentionShape.of(fields, scale=fields.attention_multiplier),
        activation(fields.hidden_act),
        read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL],
    )


class SharedBlock(Block):
    """A block that adds what a layer for all tokens, `shared_mlp`, makes to what the experts make."""

    shared_mlp: FusedMlp

    def fed(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size), normed -> what experts and shared layer make, the same shape."""
        return super().fed(x) + self.shared_mlp(x)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [_block(config, rope) for _ in range(fields.num_hidden_layers)]
    decoder = Decoder(
        fields.vocab_size,
        fields.hidden_size,
        norm(fields.hidden_size),
        blocks,
        fields.embedding_multiplier,
    )
    return CausalLM(decoder, fields.tie_word_embeddings, times(1 / fields.logits_scaling))


def _block(config: Config, rope: Rope) -> Block:
    fields, attention = config.fields, Attention(config.attention, rope)
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.act)
    sparse = SparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok, gate="router")
    norm, residual = rms_norm(fields.rms_norm_eps), fields.residual_multiplier
    if not fields.shared_size:
        return Block(attention, sparse, fields.hidden_size, norm, residual=residual, mlp_name=MLP)
    block = SharedBlock(attention, sparse, fields.hidden_size, norm, residual=residual, mlp_name=MLP)
    names = ("input_linear", "output_linear")
    block.shared_mlp = FusedMlp(fields.hidden_size, fields.shared_size, config.act, names=names)
    return block


SHARDING = {**VOCABULARY, **HEADS, **EXPERTS}

GRANITEMOE = Architecture(
    name="granitemoe",
    model_types=("granitemoe",),
    class_names=("GraniteMoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GraniteMoeForCausalLM",
    by_request=("rerank",),
    read_config=read_granitemoe,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)
GRANITEMOESHARED = Architecture(
    name="granitemoeshared",
    model_types=("granitemoeshared",),
    class_names=("GraniteMoeSharedForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GraniteMoeSharedForCausalLM",
    by_request=("rerank",),
    read_config=read_granitemoeshared,
    build=build,
    fields=SharedFields,
    adapters=("lora", "dora"),
    sharding={
        **SHARDING,
        r"shared_mlp\.input_linear\.": "packed",
        r"shared_mlp\.output_linear\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Granite with experts, without and with a shared layer."""
        return (GRANITEMOE, GRANITEMOESHARED)


PLUGIN = Plugin()
