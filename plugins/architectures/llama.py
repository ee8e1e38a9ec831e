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
    layer_types_of,
    window_of,
)
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True)
class Config:
    """A config that fits together. `windows` has an entry a layer, `ropes` one a layer type."""

    fields: TextFields
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
    fields = read(TextFields, content)
    fields.check()
    every = None if fields.sliding_window is None else fields.sliding_window_pattern
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, otherwise, every)
    return Config(
        fields,
        AttentionShape.of(fields),
        activation(fields.hidden_act),
        types,
        tuple(window_of(each, fields.sliding_window) for each in types),
        read_rope(content, fields.head_size, fields.max_position_embeddings, layer_types=types),
    )


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    ropes = {name: Rope(rope, config.attention.head_dim) for name, rope in config.ropes.items()}
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            Attention(config.attention, ropes[layer_type]),
            GatedMlp(fields.hidden_size, fields.intermediate_size, config.act, fields.mlp_bias),
            fields.hidden_size,
            norm,
            window,
        )
        for layer_type, window in zip(config.layer_types, config.windows, strict=True)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
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
    fields=TextFields,
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
    fields=TextFields,
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
