"""Falcon-H1 (arXiv 2507.22448): attention and a Mamba 2 mixer side by side in each layer, and many multipliers.

A multiplier stands at each place that Transformers has one: of embeddings and scores, of what attention and mixer take
and give, of keys, of each part of what a mixer's first projection makes, and two in the feed-forward layer. Published
weights are without them, those that mlx-lm writes have most of them multiplied in: its layout takes them out again.
Parameters are named as Transformers 5 names those of FalconH1ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive_where_given
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.mamba2_fields import Mamba2Fields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cache import FullCache
from weightloom.plugins.layers.cuts import HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names, times
from weightloom.plugins.layers.mamba2 import (
    Gate,
    GateThenNorm,
    Mamba2Mixer,
    Mamba2Shape,
    NormThenGate,
)
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.state import StateCache
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(Mamba2Fields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 128000
    hidden_size: int = 4096
    intermediate_size: int = 14336
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 8192
    mamba_d_ssm: int | None = 1024
    mamba_norm_before_gate: bool = True
    mamba_rms_norm: bool = False
    projectors_bias: bool = False
    lm_head_multiplier: float = 1.0
    embedding_multiplier: float = 1.0
    mlp_multipliers: tuple[float, ...] | None = None
    key_multiplier: float = 1.0
    attention_out_multiplier: float = 1.0
    attention_in_multiplier: float = 1.0
    ssm_multipliers: tuple[float, ...] | None = None
    ssm_in_multiplier: float = 1.0
    ssm_out_multiplier: float = 1.0

    @property
    def channels(self) -> int:
        """How many inputs all heads of a mixer have."""
        return super().channels if self.mamba_d_ssm is None else self.mamba_d_ssm

    @property
    def out_bias(self) -> bool:
        """Whether the projection out of a mixer has a bias."""
        return self.projectors_bias


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    mamba: Mamba2Shape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    refuse_non_positive_where_given({"mamba_d_ssm": fields.mamba_d_ssm})
    fields.check_mixers()
    for name, count in (("mlp_multipliers", 2), ("ssm_multipliers", 5)):
        given = getattr(fields, name)
        refuse_unless(given is None or len(given) == count, name, given, f"{count} numbers")
    act = activation(fields.hidden_act)
    rope = read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL]
    return Config(fields, AttentionShape.of(fields), Mamba2Shape.of(fields, act), act, rope)


class ScaledKeysAttention(Attention):
    """Attention whose keys are multiplied before they turn."""

    def __init__(self, shape: AttentionShape, rope: Rope, factor: float) -> None:
        super().__init__(shape, rope)
        self._factor = factor

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Multiply keys, (B, L, heads, head_dim) all three."""
        return queries, keys * self._factor, values


class ScaledMlp(GatedMlp):
    """A gated feed-forward layer with factors of the gate, before its activation, and of what it gives."""

    def __init__(self, config: Config) -> None:
        fields = config.fields
        gate, given = fields.mlp_multipliers or (1.0, 1.0)
        sizes = (fields.hidden_size, fields.intermediate_size)
        super().__init__(*sizes, lambda x: config.act(x * gate), fields.mlp_bias)
        self._given = given

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        return super().__call__(x) * self._given


class ScaledMixer(Mamba2Mixer):
    """A mixer with a factor of what it takes, and one of each of the five parts of what is made of that."""

    def __init__(self, config: Config) -> None:
        fields, shape = config.fields, config.mamba
        norm = NormThenGate if fields.mamba_norm_before_gate else GateThenNorm
        normed = fields.mamba_rms_norm
        super().__init__(shape, norm(shape.channels, shape.groups, fields.rms_norm_eps) if normed else Gate())
        sizes = (shape.channels, shape.channels, shape.shared, shape.shared, shape.heads)
        factors = fields.ssm_multipliers or (1.0,) * len(sizes)
        self._taken = fields.ssm_in_multiplier
        self._parts = mx.concatenate([mx.full((n,), each) for n, each in zip(sizes, factors, strict=True)])

    def project(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> gate, inputs, what is let in, what is let out and step sizes, side by side."""
        return (super().project(x * self._taken) * self._parts).astype(x.dtype)


class TwoCaches:
    """The caches of attention and of what keeps a state, as one."""

    kind = "full, and state"

    def __init__(self) -> None:
        self.attention, self.state = FullCache(), StateCache()

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self.attention.offset

    @property
    def padding(self) -> mx.array | None:
        """How many tokens at the start of each row are none."""
        return self.attention.padding

    @padding.setter
    def padding(self, padding: mx.array | None) -> None:
        self.attention.padding = self.state.padding = padding


class TwoMixersBlock(nn.Module):
    """Attention and a mixer side by side, then a feed-forward layer, each of the two after a norm."""

    window: Window = None

    def __init__(self, config: Config, rope: Rope) -> None:
        super().__init__()
        fields = config.fields
        norm = rms_norm(fields.rms_norm_eps)
        self._taken, self._given = fields.attention_in_multiplier, fields.attention_out_multiplier
        self._mixed = fields.ssm_out_multiplier
        self.mamba = ScaledMixer(config)
        self.self_attn = ScaledKeysAttention(config.attention, rope, fields.key_multiplier)
        self.feed_forward = ScaledMlp(config)
        self.input_layernorm = norm(fields.hidden_size)
        self.pre_ff_layernorm = norm(fields.hidden_size)

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        attention, state = (cache.attention, cache.state) if isinstance(cache, TwoCaches) else (cache, cache)
        normed = self.input_layernorm(x)
        mixed = self.mamba(normed, mask, state) * self._mixed
        x = x + mixed + self.self_attn(normed * self._taken, mask, attention) * self._given
        added: mx.array = self.feed_forward(self.pre_ff_layernorm(x))
        return x + added

    def make_cache(self) -> TwoCaches:
        """Give an empty cache."""
        return TwoCaches()


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    rope, norm = Rope(config.rope, config.attention.head_dim), rms_norm(fields.rms_norm_eps)
    decoder = Decoder(
        fields.vocab_size,
        fields.hidden_size,
        norm(fields.hidden_size),
        [TwoMixersBlock(config, rope) for _ in range(fields.num_hidden_layers)],
        fields.embedding_multiplier,
        Names(norm="final_layernorm"),
    )
    return CausalLM(decoder, fields.tie_word_embeddings, times(fields.lm_head_multiplier))


FALCON_H1 = Architecture(
    name="falcon_h1",
    model_types=("falcon_h1",),
    class_names=("FalconH1ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 FalconH1ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **gated("feed_forward")},
)


class Plugin:
    """Offers Falcon-H1."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Falcon-H1."""
        return (FALCON_H1,)


PLUGIN = Plugin()
