"""Mixtral (arXiv 2401.04088): a decoder whose feed-forward layers are experts, two of eight for each token.

Parameters are named as Transformers 5 names those of MixtralForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    num_experts: int = 8
    num_experts_per_tok: int = 2


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    layer_type = FULL if fields.sliding_window is None else SLIDING
    types, shape = (layer_type,) * fields.num_hidden_layers, AttentionShape.of(fields, bias=False, out_bias=False)
    return Config(fields, DenseConfig.of(fields, content, types, shape, default_theta=1e6))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config.dense, fed=lambda _: _mlp(config))


def _mlp(config: Config) -> SparseMlp:
    fields = config.fields
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.dense.act)
    return SparseMlp(experts, softmax_over_chosen, fields.num_experts_per_tok)


MIXTRAL = Architecture(
    name="mixtral",
    model_types=("mixtral",),
    class_names=("MixtralForCausalLM",),
    task="generate",
    verified="Transformers 5.24 MixtralForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **EXPERTS},
)


class Plugin:
    """Offers Mixtral."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Mixtral."""
        return (MIXTRAL,)


PLUGIN = Plugin()
