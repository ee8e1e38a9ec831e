"""dots.llm1 (arXiv 2506.05767): norms on the heads of queries and keys, late layers that slide, scored experts.

Parameters are named as Transformers 5 names those of Dots1ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
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

    vocab_size: int = 152064
    hidden_size: int = 4608
    intermediate_size: int = 10944
    num_hidden_layers: int = 62
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 32
    moe_intermediate_size: int = 1408
    n_group: int | None = 1
    topk_group: int | None = 1
    norm_topk_prob: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 62

    @property
    def types(self) -> tuple[str, ...]:
        """Each layer's type, by number where none are listed."""
        count = self.num_hidden_layers
        first = count if self.sliding_window is None else self.max_window_layers
        by_number = tuple(SLIDING if layer >= first else FULL for layer in range(count))
        return by_number if self.layer_types is None else layer_types_of(self.layer_types, count, FULL)


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
    shape = AttentionShape.of(fields, norm_eps=fields.rms_norm_eps)
    return Config(fields, DenseConfig.of(fields, content, fields.types, shape))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, dense = config.fields, config.dense
    return build_dense(dense, fed=lambda layer: feed_forward(fields, layer, dense.act, Scoring.of(fields)))


DOTS1 = Architecture(
    name="dots1",
    model_types=("dots1",),
    class_names=("Dots1ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Dots1ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **CUTS},
)


class Plugin:
    """Offers dots.llm1."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer dots.llm1."""
        return (DOTS1,)


PLUGIN = Plugin()
