"""MiniMax-M2: experts chosen by corrected scores in all layers, norms of queries and keys over all heads at once.

Heads turn in part; published configs say `rotary_dim`, in dims. Parameters are named as Transformers 5 names those of
MiniMaxM2ForCausalLM: the correction of the scores stands beside the router, which is a linear layer here. mlx-lm calls
the family `minimax`, which is another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape, WideNormAttention
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import EXPERTS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.scored_experts import LinearScoredSparseMlp
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 200064
    hidden_size: int = 3072
    intermediate_size: int = 1536
    num_hidden_layers: int = 62
    num_attention_heads: int = 48
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 196608
    num_experts: int = 256
    num_experts_per_tok: int = 8
    rotary_dim: int | None = None

    @property
    def turned_part(self) -> float:
        """The part of each head that turns; raises ConfigError for more than there is."""
        dims, size = self.rotary_dim, self.head_size
        if dims is None:
            return 1.0
        refuse_unless(0 < dims <= size, "rotary_dim", dims, f"a positive number, head_dim, {size}, at most")
        return dims / size


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    size, trained = fields.head_size, fields.max_position_embeddings
    rope = read_rope(content, size, trained, 5000000.0, default_part=fields.turned_part)[FULL]
    return Config(fields, AttentionShape.of(fields), activation(fields.hidden_act), rope)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    rope = Rope(config.rope, config.attention.head_dim)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            WideNormAttention(config.attention, rope, fields.rms_norm_eps),
            LinearScoredSparseMlp(
                Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.act),
                Scoring(),
                fields.num_experts_per_tok,
            ),
            fields.hidden_size,
            norm,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


MINIMAX_M2 = Architecture(
    name="minimax_m2",
    model_types=("minimax_m2",),
    class_names=("MiniMaxM2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 MiniMaxM2ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # The norms of queries and keys need all heads: attention is whole on each rank.
    sharding={**VOCABULARY, **EXPERTS},
)


class Plugin:
    """Offers MiniMax-M2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer MiniMax-M2."""
        return (MINIMAX_M2,)


PLUGIN = Plugin()
