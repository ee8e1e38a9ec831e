"""Gemma (arXiv 2403.08295): norms that scale by one plus their weight, scaled embeddings, heads of their own width.

Its first configs say `gelu` where the tanh approximation is meant, which the published code computes; mlx-lm 0.32 takes
them by their word. Parameters are named as Transformers 5 names those of GemmaForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_bidirectional
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True
    use_bidirectional_attention: bool | None = None


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    refuse_bidirectional(fields.use_bidirectional_attention)
    act = "gelu_pytorch_tanh" if fields.hidden_act == "gelu" else fields.hidden_act
    ropes = read_rope(content, fields.head_size, fields.max_position_embeddings)
    return Config(fields, AttentionShape.of(fields), activation(act), ropes[FULL])


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    rope = Rope(config.rope, config.attention.head_dim)
    norm = zero_centred_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            Attention(config.attention, rope),
            GatedMlp(fields.hidden_size, fields.intermediate_size, config.act),
            fields.hidden_size,
            norm,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    last = norm(fields.hidden_size)
    decoder = Decoder(fields.vocab_size, fields.hidden_size, last, blocks, sqrt(fields.hidden_size))
    return CausalLM(decoder, fields.tie_word_embeddings)


GEMMA = Architecture(
    name="gemma",
    model_types=("gemma",),
    class_names=("GemmaForCausalLM",),
    task="generate",
    verified="Transformers 5.24 GemmaForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        r"^(model\.embed_tokens|lm_head)\.": "vocab",
        r"self_attn\.[qkv]_proj\.": "column",
        r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
        r"mlp\.(gate|up)_proj\.": "column",
        r"mlp\.down_proj\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers Gemma."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Gemma."""
        return (GEMMA,)


PLUGIN = Plugin()
