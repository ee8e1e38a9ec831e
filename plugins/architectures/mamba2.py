"""Mamba 2 (arXiv 2405.21060): state spaces whose heads have one rate of decay each.

Parameters are named as Transformers 5 names those of Mamba2ForCausalLM. Transformers limits step sizes in a prompt and
not in what is generated after it; here they are limited in both. mlx-lm norms all groups as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.blocks import SingleBlock
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.mamba2 import GateThenNorm, Mamba2Mixer, Mamba2Shape, limits_of
from weightloom.plugins.layers.norms import narrowing_norm
from weightloom.plugins.specs import hookimpl

NAMES = Names(embedding="embeddings", norm="norm_f", decoder="backbone")


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    num_heads: int = 128
    head_dim: int = 64
    vocab_size: int = 32768
    hidden_size: int = 4096
    state_size: int = 128
    num_hidden_layers: int = 64
    layer_norm_epsilon: float = 1e-5
    expand: int = 2
    conv_kernel: int = 4
    n_groups: int = 8
    use_bias: bool = False
    use_conv_bias: bool = True
    hidden_act: str = "silu"
    residual_in_fp32: bool = True
    time_step_limit: tuple[float, ...] = (0.0, inf)
    tie_word_embeddings: bool = False


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    shape: Mamba2Shape


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    sizes = ("vocab_size", "hidden_size", "state_size", "num_hidden_layers", "layer_norm_epsilon", "conv_kernel")
    heads = ("num_heads", "head_dim", "n_groups", "expand")
    refuse_non_positive({name: getattr(fields, name) for name in (*sizes, *heads)})
    wide = fields.expand * fields.hidden_size
    fits = fields.num_heads * fields.head_dim == wide
    refuse_unless(fits, "num_heads", fields.num_heads, f"{wide}, expand times hidden_size, over head_dim")
    even = fields.num_heads % fields.n_groups == 0
    refuse_unless(even, "n_groups", fields.n_groups, f"a divisor of num_heads, {fields.num_heads}")
    shape = Mamba2Shape(
        fields.hidden_size,
        fields.num_heads,
        fields.head_dim,
        fields.state_size,
        fields.n_groups,
        fields.conv_kernel,
        activation(fields.hidden_act),
        fields.use_conv_bias,
        fields.use_bias,
        fields.use_bias,
        limits_of(fields.time_step_limit),
    )
    return Config(fields, shape)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, shape = config.fields, config.shape
    norm = narrowing_norm(fields.layer_norm_epsilon)
    residual = mx.float32 if fields.residual_in_fp32 else None
    blocks = [
        SingleBlock(
            Mamba2Mixer(shape, GateThenNorm(shape.channels, shape.groups, fields.layer_norm_epsilon)),
            fields.hidden_size,
            norm,
            residual,
        )
        for _ in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks, names=NAMES)
    return CausalLM(decoder, fields.tie_word_embeddings)


MAMBA2 = Architecture(
    name="mamba2",
    model_types=("mamba2",),
    class_names=("Mamba2ForCausalLM",),
    base_model_prefix="backbone",
    task="generate",
    verified="Transformers 5.24 Mamba2ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={r"^(backbone\.embeddings|lm_head)\.": "vocab"},
)


class Plugin:
    """Offers Mamba 2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Mamba 2."""
        return (MAMBA2,)


PLUGIN = Plugin()
