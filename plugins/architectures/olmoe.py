"""OLMoE (arXiv 2409.02060): experts in all layers, norms of queries and keys over all heads at once.

Queries, keys and values are clipped where `clip_qkv` says so, after the norms. Parameters are named as Transformers 5
names those of OlmoeForCausalLM, the experts stacked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive_where_given
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.layers.attention import AttentionShape, WideNormAttention
from weightloom.plugins.layers.cuts import EXPERTS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_all, softmax_over_chosen
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    num_experts: int = 64
    num_experts_per_tok: int = 8
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 4096
    clip_qkv: float | None = None
    norm_topk_prob: bool = False


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    refuse_non_positive_where_given({"clip_qkv": fields.clip_qkv})
    return Config(fields, DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers))


class ClippedAttention(WideNormAttention):
    """Attention that clips queries, keys and values at `limit`, if any."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, norm_eps: float, limit: float | None) -> None:
        super().__init__(shape, rope, norm_eps)
        self._limit = limit

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Clip all three, (B, L, heads, head_dim) each; they come normed."""
        return self._clipped(queries), self._clipped(keys), self._clipped(values)

    def _clipped(self, x: mx.array) -> mx.array:
        return x if self._limit is None else mx.clip(x, -self._limit, self._limit)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    return build_dense(
        config.dense,
        lambda shape, rope: ClippedAttention(shape, rope, fields.rms_norm_eps, fields.clip_qkv),
        fed=lambda _: _mlp(config),
    )


def _mlp(config: Config) -> SparseMlp:
    fields = config.fields
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.dense.act)
    router = softmax_over_chosen if fields.norm_topk_prob else softmax_over_all
    return SparseMlp(experts, router, fields.num_experts_per_tok)


OLMOE = Architecture(
    name="olmoe",
    model_types=("olmoe",),
    class_names=("OlmoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 OlmoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # The norms of queries and keys need all heads: attention is whole on each rank.
    sharding={**VOCABULARY, **EXPERTS},
)


class Plugin:
    """Offers OLMoE."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer OLMoE."""
        return (OLMOE,)


PLUGIN = Plugin()
