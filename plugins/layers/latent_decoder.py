"""Decoders with latent attention and scored experts, as DeepSeek has them: what a config comes to, and its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.deepseek_fields import LatentExpertFields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.latent_attention import HEAD_CUTS, LatentAttention, LatentShape
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.scored_experts import CUTS, feed_forward
from weightloom.plugins.layers.scoring import Scoring

SHARDING = {**VOCABULARY, **HEAD_CUTS, **CUTS}

F = TypeVar("F", bound=LatentExpertFields)


@dataclass(frozen=True)
class LatentConfig(Generic[F]):
    """A config that fits together."""

    fields: F
    attention: LatentShape
    act: Activation
    rope: RopeConfig

    @classmethod
    def of(cls, fields: F, content: Mapping[str, Any]) -> LatentConfig[F]:
        """Give what checked fields come to; raises ConfigError, naming the field, where the rest does not fit."""
        rope = read_rope(content, fields.qk_rope_head_dim, fields.max_position_embeddings)[FULL]
        return cls(fields, LatentShape.of(fields, rope), activation(fields.hidden_act), rope)


def build_latent(
    config: LatentConfig[F],
    scoring: Scoring,
    corrected: bool = True,
    interleaved: bool = True,
    attention: Callable[[LatentShape, Rope], LatentAttention] = LatentAttention,
    block: type[Block] = Block,
) -> CausalLM:
    """Make the module; its parameters are not computed.

    `corrected` says whether scores of experts have a correction, `interleaved` whether neighbours turn against each
    other; `attention` and `block` make each layer's.
    """
    fields, norm = config.fields, rms_norm(config.fields.rms_norm_eps)
    rope = Rope(config.rope, fields.qk_rope_head_dim, interleaved)
    blocks = [
        block(
            attention(config.attention, rope),
            feed_forward(fields, layer, config.act, scoring, corrected),
            fields.hidden_size,
            norm,
        )
        for layer in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)
