"""Ling (arXiv 2503.05139) and Ling 2: experts with shared ones beside them, one product for queries, keys and values.

Ling scores experts by their shares; Ling 2 by the logistic function with a correction, in groups, and it norms the
heads of queries and keys. Transformers has no class for either: parameters are named as it names those of a relative,
bailing_hybrid, the product cut in three. Where a config has `norm_head` each input of the head is divided by the length
of the head's weights for it. Groups that are not chosen are out, as in the vendor's code; in mlx-lm they count as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive_where_given
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import HEADS
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.norm_head import ColumnNormHeadLM
from weightloom.plugins.layers.scored_experts import CUTS, LinearScoredSparseMlp, feed_forward
from weightloom.plugins.layers.scoring import Scoring, shares
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ScoredFields):
    """What config.json says."""

    called: ClassVar[Mapping[str, str]] = {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}

    n_shared_experts: int | None = 0
    moe_shared_expert_intermediate_size: int | None = None
    score_function: Literal["softmax", "sigmoid"] = "softmax"
    moe_router_enable_expert_bias: bool = False
    use_bias: bool = False
    use_qkv_bias: bool = False
    use_qk_norm: bool = False
    norm_head: bool = False
    rotary_dim: int | None = None

    @property
    def shared_width(self) -> int:
        """The width of the layer that every token goes through, 0 for none."""
        width = self.moe_shared_expert_intermediate_size or self.moe_intermediate_size
        return width * (self.n_shared_experts or 0)

    @property
    def turned_part(self) -> float:
        """The part of each head that turns, where `rotary_dim` says so; raises ConfigError for more than there is."""
        dims, size = self.rotary_dim, self.head_size
        if dims is None:
            return 1.0
        refuse_unless(0 < dims <= size, "rotary_dim", dims, f"a positive number, the size of a head, {size}, at most")
        return dims / size


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig
    scoring: Scoring


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content, Fields.called)
    fields.check()
    refuse_non_positive_where_given({"moe_shared_expert_intermediate_size": fields.moe_shared_expert_intermediate_size})
    fields.check_experts()
    refuse_unless(not fields.use_bias, "use_bias", True, "false: no published model has biases in its experts")
    refuse_unless(not (fields.norm_head and fields.tie_word_embeddings), "norm_head", True, "false with a tied head")
    eps = fields.rms_norm_eps if fields.use_qk_norm else None
    scores = shares if fields.score_function == "softmax" else mx.sigmoid
    normalise = fields.norm_topk_prob and fields.num_experts_per_tok > 1
    scale = fields.routed_scaling_factor
    shape = AttentionShape.of(fields, bias=fields.use_qkv_bias, out_bias=False, norm_eps=eps)
    types, part = (FULL,) * fields.num_hidden_layers, fields.turned_part
    return Config(
        fields,
        DenseConfig.of(fields, content, types, shape, default_part=part),
        Scoring(scores, fields.groups, fields.kept_groups, normalise=normalise, scale=scale),
    )


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(
        config.dense,
        fed=lambda layer: _fed(config, layer),
        model=ColumnNormHeadLM if config.fields.norm_head else CausalLM,
    )


def _fed(config: Config, layer: int) -> nn.Module:
    fields = config.fields
    corrected = fields.moe_router_enable_expert_bias
    return feed_forward(fields, layer, config.dense.act, config.scoring, corrected, LinearScoredSparseMlp)


BAILING_MOE = Architecture(
    name="bailing_moe",
    model_types=("bailing_moe",),
    class_names=("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"),
    task="generate",
    verified="mlx-lm 0.32.2 bailing_moe",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # The head is whole on each rank: its norms are over the vocabulary.
    sharding={**HEADS, **CUTS},
)


class Plugin:
    """Offers Ling."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Ling."""
        return (BAILING_MOE,)


PLUGIN = Plugin()
