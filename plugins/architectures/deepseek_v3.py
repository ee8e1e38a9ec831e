"""DeepSeek-V3 (arXiv 2412.19437) and R1, and Kimi K2, which differs in numbers alone: latent attention, scored experts.

Experts are chosen by corrected scores, in the best groups. Parameters are named as Transformers 5 names those of
DeepseekV3ForCausalLM. Layers that guess further tokens, behind the others, are kept for saving and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.latent_fields import LatentFields
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.latent_attention import HEAD_CUTS, LatentAttention, LatentShape
from weightloom.plugins.layers.norms import rms_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.scored_experts import CUTS, feed_forward
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(ScoredFields, LatentFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 129280
    hidden_size: int = 7168
    intermediate_size: int = 18432
    num_hidden_layers: int = 61
    num_attention_heads: int = 128
    max_position_embeddings: int = 4096
    moe_intermediate_size: int = 2048
    n_routed_experts: int = 256
    n_shared_experts: int | None = 1
    num_experts_per_tok: int = 8
    first_k_dense_replace: int = 3
    n_group: int | None = 8
    topk_group: int | None = 4
    routed_scaling_factor: float = 2.5
    rope_interleave: bool = True


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: LatentShape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    fields.check_parts()
    fields.check_experts()
    rope = read_rope(content, fields.qk_rope_head_dim, fields.max_position_embeddings)[FULL]
    return Config(fields, LatentShape.of(fields, rope), activation(fields.hidden_act), rope)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    rope = Rope(config.rope, fields.qk_rope_head_dim, fields.rope_interleave)
    norm = rms_norm(fields.rms_norm_eps)
    blocks = [
        Block(
            LatentAttention(config.attention, rope),
            feed_forward(fields, layer, config.act, Scoring.of(fields)),
            fields.hidden_size,
            norm,
        )
        for layer in range(fields.num_hidden_layers)
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, norm(fields.hidden_size), blocks)
    return CausalLM(decoder, fields.tie_word_embeddings)


DEEPSEEK_V3 = Architecture(
    name="deepseek_v3",
    model_types=("deepseek_v3", "kimi_k2"),
    class_names=("DeepseekV3ForCausalLM", "KimiK2ForCausalLM"),
    task="generate",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={r"^(model\.embed_tokens|lm_head)\.": "vocab", **HEAD_CUTS, **CUTS},
)


class Plugin:
    """Offers DeepSeek-V3."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer DeepSeek-V3."""
        return (DEEPSEEK_V3,)


PLUGIN = Plugin()
