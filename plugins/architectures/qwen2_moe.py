"""Qwen2 with experts (Qwen1.5-MoE, Qwen2-57B-A14B): beside those that are chosen, one that all tokens go through.

What the shared expert makes counts by a score of its own. A layer has experts if it is not in `mlp_only_layers` and its
number, from 1, divides by `decoder_sparse_step`. Parameters are named as Transformers 5 names those of
Qwen2MoeForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.expert_fields import SharedExpertFields, read_experts
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.some_experts import some_experts_and_shared
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(SharedExpertFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int = 60
    num_experts_per_tok: int = 4
    intermediate_size: int = 5632
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int = 5632
    num_key_value_heads: int | None = 16
    max_position_embeddings: int = 32768
    qkv_bias: bool = True
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28

    def slides(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has a window where `layer_types` does not say: every other one has."""
        return self.use_sliding_window and layer % 2 == 0 and layer < self.max_window_layers


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(
        Fields, content, "moe_intermediate_size", "shared_expert_intermediate_size", "decoder_sparse_step"
    )
    count = fields.num_hidden_layers
    alternating = tuple(SLIDING if fields.slides(layer) else FULL for layer in range(count))
    types = layer_types_of(alternating if fields.layer_types is None else fields.layer_types, count, FULL)
    shape = AttentionShape.of(fields, bias=fields.qkv_bias, out_bias=False)
    return Config(fields, DenseConfig.of(fields, content, types, shape))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, dense = config.fields, config.dense
    return build_dense(dense, fed=lambda layer: some_experts_and_shared(fields, layer, dense.act))


QWEN2_MOE = Architecture(
    name="qwen2_moe",
    model_types=("qwen2_moe",),
    class_names=("Qwen2MoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen2MoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **gated("mlp", "shared_expert"), **EXPERTS},
)


class Plugin:
    """Offers Qwen2 with experts."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Qwen2 with experts."""
        return (QWEN2_MOE,)


PLUGIN = Plugin()
