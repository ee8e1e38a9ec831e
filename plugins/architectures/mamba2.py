"""Mamba 2 (arXiv 2405.21060): state spaces whose heads have one rate of decay each.

Parameters are named as Transformers 5 names those of Mamba2ForCausalLM. Transformers limits step sizes in a prompt and
not in what is generated after it; here they are limited in both. mlx-lm norms all groups as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.mamba_fields import MambaFields
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.mamba2 import GateThenNorm, Mamba2Mixer, Mamba2Shape, limits_of
from weightloom.plugins.layers.mamba_decoder import SHARDING, build_mamba
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(MambaFields):
    """What config.json says; defaults are the published ones."""

    num_heads: int = 128
    head_dim: int = 64
    vocab_size: int = 32768
    hidden_size: int = 4096
    state_size: int = 128
    num_hidden_layers: int = 64
    n_groups: int = 8
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
    fields.check("num_heads", "head_dim", "n_groups", "expand")
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
    shape, eps = config.shape, config.fields.layer_norm_epsilon
    return build_mamba(config.fields, lambda: Mamba2Mixer(shape, GateThenNorm(shape.channels, shape.groups, eps)))


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
    sharding=SHARDING,
)


class Plugin:
    """Offers Mamba 2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Mamba 2."""
        return (MAMBA2,)


PLUGIN = Plugin()
