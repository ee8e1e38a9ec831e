"""MiniMax-M2: experts chosen by corrected scores in all layers, norms of queries and keys over all heads at once.

Heads turn in part; published configs say `rotary_dim`, in dims. Parameters are named as Transformers 5 names those of
MiniMaxM2ForCausalLM: the correction of the scores stands beside the router, which is a linear layer here. mlx-lm calls
the family `minimax`, which is another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.expert_fields import ExpertFields, read_experts
from weightloom.plugins.layers.attention import WideNormAttention
from weightloom.plugins.layers.cuts import EXPERTS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.scored_experts import LinearScoredSparseMlp
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ExpertFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 200064
    hidden_size: int = 3072
    intermediate_size: int = 1536
    num_hidden_layers: int = 62
    num_attention_heads: int = 48
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 196608
    num_experts: int = 256
    num_experts_per_tok: int = 8
    rotary_dim: int | None = None

    @property
    def turned_part(self) -> float:
        """The part of each head that turns; raises ConfigError for more than there is."""
        dims, size = self.rotary_dim, self.head_size
        if dims is None:
            return 1.0
        refuse_unless(0 < dims <= size, "rotary_dim", dims, f"a positive number, head_dim, {size}, at most")
        return dims / size


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read_experts(Fields, content)
    types = (FULL,) * fields.num_hidden_layers
    dense = DenseConfig.of(fields, content, types, default_theta=5000000.0, default_part=fields.turned_part)
    return Config(fields, dense)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    eps = config.fields.rms_norm_eps
    return build_dense(
        config.dense, lambda shape, rope: WideNormAttention(shape, rope, eps), fed=lambda _: _mlp(config)
    )


def _mlp(config: Config) -> LinearScoredSparseMlp:
    fields = config.fields
    experts = Experts(fields.num_experts, fields.hidden_size, fields.intermediate_size, config.dense.act)
    return LinearScoredSparseMlp(experts, Scoring(), fields.num_experts_per_tok)


MINIMAX_M2 = Architecture(
    name="minimax_m2",
    model_types=("minimax_m2",),
    class_names=("MiniMaxM2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 MiniMaxM2ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    # The norms of queries and keys need all heads: attention is whole on each rank.
    sharding={**VOCABULARY, **EXPERTS},
)


class Plugin:
    """Offers MiniMax-M2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer MiniMax-M2."""
        return (MINIMAX_M2,)


PLUGIN = Plugin()
