"""Hunyuan with experts (A13B): beside those that are chosen, a layer that all tokens go through, as wide as each.

Heads of queries and keys are normed after they have turned; the rope is "dynamic" with an `alpha`, as in dense ones.
How many experts a token goes to may differ by layer. Parameters are named as Transformers 5 names those of
HunYuanMoEV1ForCausalLM. Weights of the chosen sum to 1, as there and in the vendor's code; in mlx-lm they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, refuse_non_positive, refuse_too_many_chosen
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope, refuse_changing
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import EXPERTS, HEADS, VOCABULARY, gated
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.late_norm_attention import LateNormAttention
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.routing import softmax_over_chosen
from weightloom.plugins.layers.shared_experts import SharedSparseMlp
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. `moe_topk` may have an entry a layer."""

    rms_norm_eps: float = 1e-5
    num_experts: int = 1
    moe_topk: int | tuple[int, ...] = 1

    @property
    def chosen(self) -> tuple[int, ...]:
        """How many experts a token goes to, by layer."""
        count = self.num_hidden_layers
        return (self.moe_topk,) * count if isinstance(self.moe_topk, int) else self.moe_topk[:count]


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: AttentionShape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    called = "moe_topk" if "moe_topk" in content else "num_experts_per_tok"
    fields = read(Fields, content, {"moe_topk": called})
    fields.check("num_experts")
    count, chosen = fields.num_hidden_layers, fields.chosen
    refuse_unless(
        len(chosen) == count, called, f"a list of {len(chosen)}", f"a number, or one for each of {count} layers"
    )
    for each in chosen:
        refuse_non_positive({called: each})
        refuse_too_many_chosen(each, fields.num_experts, "num_experts", called)
    rope = read_rope(content, fields.head_size, fields.max_position_embeddings)[FULL]
    refuse_changing(rope)
    return Config(fields, AttentionShape.of(fields), activation(fields.hidden_act), rope)


class Gate(nn.Module):
    """The router, under the name that the family gives it: `wg` (E, H)."""

    def __init__(self, hidden_size: int, count: int) -> None:
        super().__init__()
        self.wg = nn.Linear(hidden_size, count, bias=False)

    def __call__(self, tokens: mx.array) -> mx.array:
        """Tokens (N, H) -> the score of each expert, (N, E) float32."""
        return self.wg(tokens.astype(mx.float32))


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, rope = config.fields, Rope(config.rope, config.attention.head_dim)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            LateNormAttention(config.attention, rope, fields.rms_norm_eps),
            _mlp(config, k),
            fields.hidden_size,
            norm,
        )
        for k in fields.chosen
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


def _mlp(config: Config, k: int) -> SharedSparseMlp:
    fields = config.fields
    sizes = (fields.hidden_size, fields.intermediate_size, config.act)
    experts = Experts(fields.num_experts, *sizes)
    sparse = SharedSparseMlp(experts, softmax_over_chosen, k, GatedMlp(*sizes), "shared_mlp")
    sparse.gate = Gate(fields.hidden_size, fields.num_experts)
    return sparse


HUNYUAN_V1_MOE = Architecture(
    name="hunyuan_v1_moe",
    model_types=("hunyuan_v1_moe",),
    class_names=("HunYuanMoEV1ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 HunYuanMoEV1ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **gated("shared_mlp"), **EXPERTS},
)


class Plugin:
    """Offers Hunyuan with experts."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Hunyuan with experts."""
        return (HUNYUAN_V1_MOE,)


PLUGIN = Plugin()
