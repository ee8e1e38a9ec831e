"""Ministral 3: Mistral with queries that grow with their position, so that attention stays sharp in long contexts.

A query at position p is multiplied by 1 + beta * log(1 + floor(p / n)), n the context that the rotary embeddings were
first trained for, as Llama 4 does it. The settings stand with the rotary ones (`llama_4_scaling_beta`); without that
one nothing is scaled. All layers slide where there is a window, unless `layer_types` says otherwise: mlx-lm heeds that,
Transformers passes over it.
Parameters are named as Transformers 5 names those of Ministral3ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_sections import rope_sections
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl

PUBLISHED_ROPE: Mapping[str, Any] = {
    "rope_type": "yarn",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
"""The rotary settings of a config that has none."""


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 262144


@dataclass(frozen=True, slots=True)
class Growth:
    """How queries grow: by `beta` for each `every` positions, logarithmically."""

    beta: float
    every: float


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    dense: DenseConfig
    growth: Growth | None


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    silent = content.get("rope_parameters") is None and content.get("rope_scaling") is None
    content = {**content, "rope_parameters": PUBLISHED_ROPE} if silent else content
    fields = read(Fields, content)
    fields.check()
    otherwise = FULL if fields.sliding_window is None else SLIDING
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, otherwise)
    return Config(DenseConfig.of(fields, content, types), _growth(content))


def _growth(content: Mapping[str, Any]) -> Growth | None:
    section = rope_sections(content, (FULL,))[FULL]
    numbers = {name: section.value(name) for name in ("llama_4_scaling_beta", "original_max_position_embeddings")}
    if numbers["llama_4_scaling_beta"] is None:
        return None
    for name, value in numbers.items():
        fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
        refuse_unless(fine, section.field(name), value, "a positive number")
    return Growth(*map(float, numbers.values()))


class GrowingAttention(Attention):
    """Attention whose queries grow with their position."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, growth: Growth) -> None:
        super().__init__(shape, rope)
        self._growth = growth

    def placed(self, queries: mx.array, keys: mx.array, position: int | mx.array) -> tuple[mx.array, mx.array]:
        """Put positions into queries and keys, (B, heads, L, head_dim) each."""
        queries, keys = super().placed(queries, keys, position)
        count = mx.arange(queries.shape[2])
        here = count + (position if isinstance(position, int) else position[:, None, None])
        # What fills up a row stands before its position 0.
        steps = mx.floor(mx.maximum(here, 0) / self._growth.every)
        factor = 1 + self._growth.beta * mx.log(1 + steps)
        return queries * factor[..., None].astype(queries.dtype), keys


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    growth = config.growth
    if growth is None:
        return build_dense(config.dense)
    return build_dense(config.dense, lambda shape, rope: GrowingAttention(shape, rope, growth))


MINISTRAL3 = Architecture(
    name="ministral3",
    model_types=("ministral3",),
    class_names=("Ministral3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Ministral3ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers Ministral 3."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Ministral 3."""
        return (MINISTRAL3,)


PLUGIN = Plugin()
