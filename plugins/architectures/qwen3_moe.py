"""Qwen3 with experts (arXiv 2505.09388): norms on the heads of queries and keys, experts in all or some layers.

A layer has experts if it is not in `mlp_only_layers` and its number, from 1, divides by `decoder_sparse_step`.
Parameters are named as Transformers 5 names those of Qwen3MoeForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.expert_fields import SomeExpertsFields, read_experts
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import DENSE, EXPERTS
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.some_experts import some_experts
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(SomeExpertsFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int
    intermediate_size: int = 6144
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    num_experts_per_tok: int = 8


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content, "moe_intermediate_size", "decoder_sparse_step")
    slides = fields.use_sliding_window and fields.sliding_window is not None
    every = fields.sliding_window_pattern if slides else None
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, SLIDING if slides else FULL, every)
    shape = AttentionShape.of(fields, norm_eps=fields.rms_norm_eps)
    return Config(fields, DenseConfig.of(fields, content, types, shape))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, dense = config.fields, config.dense
    return build_dense(dense, fed=lambda layer: some_experts(fields, layer, dense.act))


QWEN3_MOE = Architecture(
    name="qwen3_moe",
    model_types=("qwen3_moe",),
    class_names=("Qwen3MoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen3MoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**DENSE, **EXPERTS},
)


class Plugin:
    """Offers Qwen3 with experts."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Qwen3 with experts."""
        return (QWEN3_MOE,)


PLUGIN = Plugin()
