"""Mixtral (arXiv 2401.04088): a decoder whose feed-forward layers are experts, two of eight for each token.

Parameters are named as Transformers 5 names those of MixtralForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    SLIDING,
    expert_count_field,
    head_dim_of,
    kv_heads_of,
    refuse_non_positive,
    refuse_too_many_chosen,
    window_of,
)
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.decoder import Block, CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts, SparseMlp, softmax_over_chosen
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None = 8
    head_dim: int | None = None
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    num_experts: int = 8
    num_experts_per_tok: int = 2


@dataclass(frozen=True)
class Config:
    """A config that fits together; `window` None: every layer sees all."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    window: int | None
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    experts = expert_count_field(content)
    fields = read(Fields, content, {"num_experts": experts})
    sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    more = ("num_experts_per_tok", "rms_norm_eps", "max_position_embeddings")
    positive = {name: getattr(fields, name) for name in (*sizes, *more)}
    refuse_non_positive({**positive, experts: fields.num_experts})
    refuse_too_many_chosen(fields.num_experts_per_tok, fields.num_experts, experts)
    head_dim = head_dim_of(fields.head_dim, fields.hidden_size, fields.num_attention_heads)
    kv_heads = kv_heads_of(fields.num_key_value_heads, fields.num_attention_heads)
    layer_type = FULL if fields.sliding_window is None else SLIDING
    ropes = read_rope(content, head_dim, fields.max_position_embeddings, 1e6, (layer_type,))
    return Config(
        fields,
        AttentionShape(fields.hidden_size, fields.num_attention_heads, kv_heads, head_dim),
        activation(fields.hidden_act),
        window_of(layer_type, fields.sliding_window),
        ropes[layer_type],
    )


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    blocks = [
        Block(
            Attention(config.attention, rope),
            _mlp(config),
            fields.hidden_size,
            fields.rms_norm_eps,
            config.window,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, fields.rms_norm_eps, blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _mlp(config: Config) -> SparseMlp:
    fields = config.fields
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.act)
    return SparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok)


MIXTRAL = Architecture(
    name="mixtral",
    model_types=("mixtral",),
    class_names=("MixtralForCausalLM",),
    task="generate",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        r"^(model\.embed_tokens|lm_head)\.": "vocab",
        r"self_attn\.[qkv]_proj\.": "column",
        r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
        r"experts\.gate_up_proj": "packed",
        r"experts\.down_proj": "row",
    },
)


class Plugin:
    """Offers Mixtral."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Mixtral."""
        return (MIXTRAL,)


PLUGIN = Plugin()
