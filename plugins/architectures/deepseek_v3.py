"""DeepSeek-V3 (arXiv 2412.19437) and R1, Kimi K2 and GLM-4.7 Flash: latent attention, experts by corrected scores.

They differ in numbers alone; a config of the last, which Transformers calls glm4_moe_lite, lists the layers that have
experts, or all but the first have. Parameters are named as Transformers 5 names those of DeepseekV3ForCausalLM and
Glm4MoeLiteForCausalLM. Layers that guess further tokens, behind the others, are kept for saving and not run.
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
from weightloom.plugins.layers.cuts import VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM, Decoder
from weightloom.plugins.layers.latent_attention import HEAD_CUTS, LatentAttention, LatentShape
from weightloom.plugins.layers.latent_halves import unpacked_halves
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


@dataclass(frozen=True, kw_only=True)
class LiteFields(Fields):
    """What config.json of glm4_moe_lite says; defaults are the published ones."""

    vocab_size: int = 154880
    hidden_size: int = 2048
    intermediate_size: int = 10240
    num_hidden_layers: int = 47
    num_attention_heads: int = 20
    max_position_embeddings: int = 202752
    rms_norm_eps: float = 1e-5
    moe_intermediate_size: int = 1536
    n_routed_experts: int = 64
    num_experts_per_tok: int = 4
    first_k_dense_replace: int = 1
    n_group: int | None = 1
    topk_group: int | None = 1
    routed_scaling_factor: float = 1.8
    q_lora_rank: int | None = 768
    qk_nope_head_dim: int = 192
    v_head_dim: int = 256


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    attention: LatentShape
    act: Activation
    rope: RopeConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read a DeepSeek-V3's config.json; raises ConfigError naming the field that is off."""
    return _checked(read(Fields, content), content)


def read_lite(content: Mapping[str, Any]) -> Config:
    """Read a GLM-4.7 Flash's config.json; raises ConfigError naming the field that is off."""
    return _checked(read(LiteFields, content), content)


def _checked(fields: Fields, content: Mapping[str, Any]) -> Config:
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


SHARDING = {**VOCABULARY, **HEAD_CUTS, **CUTS}

DEEPSEEK_V3 = Architecture(
    name="deepseek_v3",
    model_types=("deepseek_v3", "kimi_k2"),
    class_names=("DeepseekV3ForCausalLM", "KimiK2ForCausalLM"),
    task="generate",
    verified="Transformers 5.24 DeepseekV3ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    rewrite_rules=unpacked_halves,
    sharding=SHARDING,
)
GLM4_MOE_LITE = Architecture(
    name="glm4_moe_lite",
    model_types=("glm4_moe_lite",),
    class_names=("Glm4MoeLiteForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Glm4MoeLiteForCausalLM",
    by_request=("rerank",),
    read_config=read_lite,
    build=build,
    fields=LiteFields,
    adapters=("lora", "dora"),
    rewrite_rules=unpacked_halves,
    sharding=SHARDING,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer DeepSeek-V3 and GLM-4.7 Flash."""
        return (DEEPSEEK_V3, GLM4_MOE_LITE)


PLUGIN = Plugin()
