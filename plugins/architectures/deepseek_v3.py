"""DeepSeek-V3 (arXiv 2412.19437) and R1, Kimi K2 and GLM-4.7 Flash: latent attention, experts by corrected scores.

They differ in numbers alone; a config of the last, which Transformers calls glm4_moe_lite, lists the layers that have
experts, or all but the first have. Parameters are named as Transformers 5 names those of DeepseekV3ForCausalLM and
Glm4MoeLiteForCausalLM. Layers that guess further tokens, behind the others, are kept for saving and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.deepseek_fields import DeepSeekV3Fields
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.latent_decoder import SHARDING, LatentConfig, build_latent
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.layouts.latent_halves import unpacked_halves
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(DeepSeekV3Fields):
    """What config.json says; defaults are the published ones."""

    max_position_embeddings: int = 4096
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


Config: TypeAlias = LatentConfig[Fields]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read a DeepSeek-V3's config.json; raises ConfigError naming the field that is off."""
    return _checked(read(Fields, content), content)


def read_lite(content: Mapping[str, Any]) -> Config:
    """Read a GLM-4.7 Flash's config.json; raises ConfigError naming the field that is off."""
    return _checked(read(LiteFields, content), content)


def _checked(fields: Fields, content: Mapping[str, Any]) -> Config:
    fields.check_all()
    return LatentConfig.of(fields, content)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    return build_latent(config, Scoring.of(fields), interleaved=fields.rope_interleave)


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
