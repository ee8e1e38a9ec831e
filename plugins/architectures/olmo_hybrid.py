"""OLMo Hybrid: gated delta rules (arXiv 2412.06464) in three layers of four, attention as OLMo 2 has it in the others.

Layers of linear attention have their norms before what they are for, those of attention after it (arXiv 2501.00656).
A `rope_theta` that is null, which is not one that is lacking, says that queries and keys do not turn. The norm of what
linear attention reads adds 1e-5 whatever `rms_norm_eps` is; rates go up to 2 unless `linear_allow_neg_eigval` is false
(arXiv 2411.12537).
Parameters are named as Transformers 5 names those of OlmoHybridForCausalLM, one convolution for queries, keys, values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, layer_types_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.linear_fields import LINEAR, SIZES, refuse_linear_sizes
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape, WideNormAttention
from weightloom.plugins.layers.blocks import PostNormBlock
from weightloom.plugins.layers.cuts import GATED, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Layer
from weightloom.plugins.layers.delta_net import DeltaNet, DeltaShape, GatedNorm, Projected
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 100352
    hidden_size: int = 3840
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 30
    max_position_embeddings: int = 65536
    rope_theta: float | None = 10000.0
    linear_num_key_heads: int | None = None
    linear_num_value_heads: int | None = None
    linear_key_head_dim: int | None = None
    linear_value_head_dim: int | None = None
    linear_conv_kernel_dim: int = 4
    linear_allow_neg_eigval: bool = True

    def types(self) -> tuple[str, ...]:
        """Give each layer's type: as listed, else attention in each fourth, or in the last where there are fewer."""
        count = self.num_hidden_layers
        last = min(4, count)
        otherwise = tuple(LINEAR if layer % 4 and layer != last else FULL for layer in range(1, count + 1))
        listed = otherwise if self.layer_types is None else self.layer_types
        return layer_types_of(listed, count, FULL, known=(FULL, LINEAR))

    def delta(self) -> DeltaShape:
        """Give the sizes of linear attention, those that lack from the others; raises ConfigError naming the field."""
        key_heads = self.num_attention_heads if self.linear_num_key_heads is None else self.linear_num_key_heads
        value_heads = self.num_attention_heads if self.linear_num_value_heads is None else self.linear_num_value_heads
        key, value = self.linear_key_head_dim, self.linear_value_head_dim
        key = int(0.75 * self.hidden_size / max(key_heads, 1)) if key is None else key
        sizes = (key_heads, value_heads, key, 2 * key if value is None else value, self.linear_conv_kernel_dim)
        refuse_linear_sizes(dict(zip(SIZES, sizes, strict=True)))
        return DeltaShape(self.hidden_size, *sizes, top_rate=2.0 if self.linear_allow_neg_eigval else 1.0)


@dataclass(frozen=True)
class Config:
    """A config that fits together: `types` has an entry a layer; `rope` None, nothing turns."""

    fields: Fields
    attention: AttentionShape
    delta: DeltaShape
    act: Activation
    types: tuple[str, ...]
    rope: RopeConfig | None


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    return Config(
        fields,
        AttentionShape.of(fields),
        fields.delta(),
        activation(fields.hidden_act),
        fields.types(),
        None
        if _without_turning(content)
        else read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL],
    )


def _without_turning(content: Mapping[str, Any]) -> bool:
    """Say whether the base of rotary embeddings is there and null."""
    section = content.get("rope_parameters")
    places = (content, section if isinstance(section, Mapping) else {})
    said = [place["rope_theta"] for place in places if "rope_theta" in place]
    return bool(said) and all(theta is None for theta in said)


class ApartDeltaNet(DeltaNet):
    """A delta net with a matrix for each: queries, keys, values, gates, rates, and what decays are made of."""

    def __init__(self, shape: DeltaShape, act: Activation) -> None:
        inputs = {
            "q_proj": shape.keys,
            "k_proj": shape.keys,
            "v_proj": shape.values,
            "g_proj": shape.values,
            "b_proj": shape.value_heads,
            "a_proj": shape.value_heads,
        }
        super().__init__(shape, act, inputs)
        self.o_norm = GatedNorm(shape.value_dim, 1e-5)
        self.o_proj = nn.Linear(shape.values, shape.hidden_size, bias=False)

    def project(self, x: mx.array) -> Projected:
        """(B, L, hidden_size) -> what the rule works on."""
        *mixed, gate, rate, step = self.projected(x)
        return Projected(mx.concatenate(mixed, axis=-1), gate, rate, step)

    def out(self, read: mx.array, gate: mx.array) -> mx.array:
        """What was read and the gate, (B, L, value_heads, value_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.o_proj(self.o_norm(read, gate).flatten(2))
        return made


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, rms_norm(config.fields.rms_norm_eps)
    rope = None if config.rope is None else Rope(config.rope, config.attention.head_dim)
    blocks = [_block(config, layer_type, rope) for layer_type in config.types]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _block(config: Config, layer_type: str, rope: Rope | None) -> Layer:
    fields, norm = config.fields, rms_norm(config.fields.rms_norm_eps)
    mlp = GatedMlp(fields.hidden_size, fields.intermediate_size, config.act)
    if layer_type == FULL:
        attention = WideNormAttention(config.attention, rope, fields.rms_norm_eps)
        return PostNormBlock(attention, mlp, fields.hidden_size, norm)
    mixer = ApartDeltaNet(config.delta, config.act)
    return MixerBlock(mixer, mlp, fields.hidden_size, norm, Parts("linear_attn"), cache=StateCache)


OLMO_HYBRID = Architecture(
    name="olmo_hybrid",
    model_types=("olmo_hybrid",),
    class_names=("OlmoHybridForCausalLM",),
    task="generate",
    verified="Transformers 5.24 OlmoHybridForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **GATED},
)


class Plugin:
    """Offers OLMo Hybrid."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer OLMo Hybrid."""
        return (OLMO_HYBRID,)


PLUGIN = Plugin()
