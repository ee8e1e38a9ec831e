"""DeepSeek-V2 (arXiv 2405.04434): latent attention, experts chosen by their shares, in the best groups or among all.

Parameters are named as Transformers 5 names those of DeepseekV2ForCausalLM. Where a config has `norm_topk_prob` the
weights of the experts sum to 1 and are not scaled, as in the vendor's code. Transformers and mlx-lm pass over this
field, which no published model has on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.latent_fields import LatentFields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.cuts import VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.latent_attention import HEAD_CUTS, LatentAttention, LatentShape
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.scored_experts import CUTS, feed_forward
from weightloom.plugins.layers.scoring import Scoring, one_best, shares
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ScoredFields, LatentFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 102400
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    moe_intermediate_size: int = 1407
    n_routed_experts: int = 64
    n_shared_experts: int | None = 2
    norm_topk_prob: bool = False
    topk_method: Literal["greedy", "group_limited_greedy"] = "greedy"

    @property
    def groups(self) -> int:
        """How many groups of experts there are: one where all compete."""
        return super().groups if self.topk_method == "group_limited_greedy" else 1


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: LatentShape
    act: Activation
    rope: RopeConfig
    scoring: Scoring


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    fields.check_parts()
    fields.check_experts(of_group=1)
    rope = read_rope(content, fields.qk_rope_head_dim, fields.max_position_embeddings)[FULL]
    normalise = fields.norm_topk_prob and fields.num_experts_per_tok > 1
    scale = 1.0 if normalise else fields.routed_scaling_factor
    return Config(
        fields,
        LatentShape.of(fields, rope),
        activation(fields.hidden_act),
        rope,
        Scoring(shares, fields.groups, fields.kept_groups, one_best, normalise, scale),
    )


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    rope = Rope(config.rope, fields.qk_rope_head_dim, interleaved=True)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            LatentAttention(config.attention, rope),
            feed_forward(fields, layer, config.act, config.scoring, corrected=False),
            fields.hidden_size,
            norm,
        )
        for layer in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


DEEPSEEK_V2 = Architecture(
    name="deepseek_v2",
    model_types=("deepseek_v2",),
    class_names=("DeepseekV2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 DeepseekV2ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEAD_CUTS, **CUTS},
)


class Plugin:
    """Offers DeepSeek-V2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer DeepSeek-V2."""
        return (DEEPSEEK_V2,)


PLUGIN = Plugin()
