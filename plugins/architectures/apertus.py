"""Apertus (arXiv 2509.14233): norms on the heads of queries and keys, and xIELU without a gate.

A config that says nothing of the rope has Llama 3's scaling with a base of twelve millions.
Parameters are named as Transformers 5 names those of ApertusForCausalLM, the constants of the activation among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import softplus
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cuts import HEADS, PLAIN, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl

XIELU = "xielu"
PARTS = Parts(mixer_norm="attention_layernorm", mlp_norm="feedforward_layernorm")
_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    hidden_act: str = XIELU
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 65536


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    refuse_unless(
        fields.hidden_act == XIELU, "hidden_act", fields.hidden_act, f"{XIELU!r}, as every published model has"
    )
    silent = content.get("rope_parameters") is None and content.get("rope_scaling") is None
    said = {**content, "rope_scaling": _ROPE} if silent else content
    ropes = read_rope(said, fields.head_size, fields.max_position_embeddings, default_theta=12000000.0)
    return Config(fields, AttentionShape.of(fields, norm_eps=fields.rms_norm_eps), ropes[FULL])


class Xielu(nn.Module):
    """xIELU (arXiv 2411.13010): quadratic where positive, below the integral of an ELU; plus a line of slope `beta`.

    The slopes are softplus(alpha_p), and beta + softplus(alpha_n), (1,) each; `beta` and `eps` () are as stored.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alpha_p = mx.zeros((1,))
        self.alpha_n = mx.zeros((1,))
        self.beta = mx.array(0.5)
        self.eps = mx.array(-1e-6)

    def __call__(self, x: mx.array) -> mx.array:
        """(...) -> the same shape, in x's dtype; computed in float32."""
        wide = x.astype(mx.float32)
        above, below = (softplus(each.astype(mx.float32)) for each in (self.alpha_p, self.alpha_n))
        bent = mx.expm1(mx.minimum(wide, self.eps)) - wide
        curved = mx.where(wide > 0, above * wide * wide, (self.beta + below) * bent)
        return (curved + self.beta * wide).astype(x.dtype)


class ApertusMlp(nn.Module):
    """down(xielu(up(x))), the slopes of the activation its own."""

    def __init__(self, hidden_size: int, intermediate_size: int) -> None:
        super().__init__()
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)
        self.act_fn = Xielu()

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        return self.down_proj(self.act_fn(self.up_proj(x)))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, norm = config.fields, rms_norm(config.fields.rms_norm_eps)
    rope = Rope(config.rope, config.attention.head_dim)
    blocks = [
        MixerBlock(
            Attention(config.attention, rope),
            ApertusMlp(fields.hidden_size, fields.intermediate_size),
            fields.hidden_size,
            norm,
            PARTS,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


APERTUS = Architecture(
    name="apertus",
    model_types=("apertus",),
    class_names=("ApertusForCausalLM",),
    task="generate",
    verified="Transformers 5.24 ApertusForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **PLAIN},
)


class Plugin:
    """Offers Apertus."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Apertus."""
        return (APERTUS,)


PLUGIN = Plugin()
