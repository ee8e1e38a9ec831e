"""Llama and Mistral: dense decoders of grouped-query attention and gated feed-forward layers.

They are one architecture with two sets of defaults: a Mistral config that is silent has a window and eight
key and value heads, and all its layers slide; a Llama's layers slide only where `layer_types` says so.
Parameters are named as Transformers 5 names those of LlamaForCausalLM and MistralForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    SLIDING,
    head_dim_of,
    kv_heads_of,
    layer_types_of,
    refuse_non_positive,
    window_of,
)
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.decoder import Block, CausalLM, Decoder
from weightloom.plugins.layers.mlp import GatedMlp
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
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    sliding_window_pattern: int | None = None
    layer_types: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Config:
    """A config that fits together. `windows` has an entry a layer, `ropes` one a layer type."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    layer_types: tuple[str, ...]
    windows: tuple[int | None, ...]
    ropes: Mapping[str, RopeConfig]


def read_llama(content: Mapping[str, Any]) -> Config:
    """Read a Llama's config.json; raises ConfigError naming the field that is off."""
    return _checked(content, otherwise=FULL)


def read_mistral(content: Mapping[str, Any]) -> Config:
    """Read a Mistral's config.json; raises ConfigError naming the field that is off."""
    published = {"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072}
    full = {**published, **content}
    return _checked(full, otherwise=FULL if full["sliding_window"] is None else SLIDING)


def _checked(content: Mapping[str, Any], otherwise: str) -> Config:
    fields = read(Fields, content)
    names = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    refuse_non_positive({name: getattr(fields, name) for name in (*names, "rms_norm_eps", "max_position_embeddings")})
    head_dim = head_dim_of(fields.head_dim, fields.hidden_size, fields.num_attention_heads)
    every = None if fields.sliding_window is None else fields.sliding_window_pattern
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, otherwise, every)
    return Config(
        fields,
        AttentionShape(
            fields.hidden_size,
            fields.num_attention_heads,
            kv_heads_of(fields.num_key_value_heads, fields.num_attention_heads),
            head_dim,
            bias=fields.attention_bias,
            out_bias=fields.attention_bias,
        ),
        activation(fields.hidden_act),
        types,
        tuple(window_of(each, fields.sliding_window) for each in types),
        read_rope(content, head_dim, fields.max_position_embeddings, layer_types=types),
    )


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    ropes = {name: Rope(rope, config.attention.head_dim) for name, rope in config.ropes.items()}
    blocks = [
        Block(
            Attention(config.attention, ropes[layer_type]),
            GatedMlp(fields.hidden_size, fields.intermediate_size, config.act, fields.mlp_bias),
            fields.hidden_size,
            fields.rms_norm_eps,
            window,
        )
        for layer_type, window in zip(config.layer_types, config.windows, strict=True)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, fields.rms_norm_eps, blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


SHARDING = {
    r"^(model\.embed_tokens|lm_head)\.": "vocab",
    r"self_attn\.[qkv]_proj\.": "column",
    r"self_attn\.o_proj\.(weight|scales|biases)$": "row",
    r"mlp\.(gate|up)_proj\.": "column",
    r"mlp\.down_proj\.(weight|scales|biases)$": "row",
}

LLAMA = Architecture(
    name="llama",
    model_types=("llama",),
    class_names=("LlamaForCausalLM",),
    task="generate",
    by_request=("rerank",),
    read_config=read_llama,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)
MISTRAL = Architecture(
    name="mistral",
    model_types=("mistral",),
    class_names=("MistralForCausalLM",),
    task="generate",
    by_request=("rerank",),
    read_config=read_mistral,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Llama and Mistral."""
        return (LLAMA, MISTRAL)


PLUGIN = Plugin()
