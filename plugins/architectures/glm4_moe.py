"""GLM-4.5 and its successors (arXiv 2508.06471): grouped-query attention that turns half of each head, scored experts.

The first layers are dense. Parameters are named as Transformers 5 names those of Glm4MoeForCausalLM. Layers that guess
further tokens, as published files have them behind the others, are kept for saving and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.scored_experts import CUTS, feed_forward
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ScoredFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 151552
    hidden_size: int = 4096
    intermediate_size: int = 10944
    num_hidden_layers: int = 46
    num_attention_heads: int = 96
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-5
    moe_intermediate_size: int = 1408
    n_routed_experts: int = 128
    n_shared_experts: int | None = 1
    num_experts_per_tok: int = 8
    first_k_dense_replace: int = 1
    n_group: int | None = 1
    topk_group: int | None = 1
    use_qk_norm: bool = False


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    fields.check_experts()
    shape = AttentionShape.of(fields, out_bias=False, norm_eps=fields.rms_norm_eps if fields.use_qk_norm else None)
    types = (FULL,) * fields.num_hidden_layers
    return Config(fields, DenseConfig.of(fields, content, types, shape, default_part=0.5))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, dense = config.fields, config.dense
    return build_dense(dense, fed=lambda layer: feed_forward(fields, layer, dense.act, Scoring.of(fields)))


GLM4_MOE = Architecture(
    name="glm4_moe",
    model_types=("glm4_moe",),
    class_names=("Glm4MoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Glm4MoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **CUTS},
)


class Plugin:
    """Offers GLM-4.5."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer GLM-4.5."""
        return (GLM4_MOE,)


PLUGIN = Plugin()
