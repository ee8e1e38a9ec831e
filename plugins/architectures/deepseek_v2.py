"""DeepSeek-V2 (arXiv 2405.04434): latent attention, experts chosen by their shares, in the best groups or among all.

Parameters are named as Transformers 5 names those of DeepseekV2ForCausalLM. Where a config has `norm_topk_prob` the
weights of the experts sum to 1 and are not scaled, as in the vendor's code. Transformers and mlx-lm pass over this
field, which no published model has on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.deepseek_fields import LatentExpertFields
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.latent_decoder import SHARDING, LatentConfig, build_latent
from weightloom.plugins.layers.scoring import Scoring, one_best, shares
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(LatentExpertFields):
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


Config: TypeAlias = LatentConfig[Fields]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check_all(of_group=1)
    return LatentConfig.of(fields, content)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_latent(config, scoring_of(config.fields), corrected=False)


def scoring_of(fields: Fields) -> Scoring:
    """Give how experts are chosen: by their shares; a group counts by its best."""
    normalise = fields.norm_topk_prob and fields.num_experts_per_tok > 1
    scale = 1.0 if normalise else fields.routed_scaling_factor
    return Scoring(shares, fields.groups, fields.kept_groups, one_best, normalise, scale)


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
    sharding=SHARDING,
)


class Plugin:
    """Offers DeepSeek-V2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer DeepSeek-V2."""
        return (DEEPSEEK_V2,)


PLUGIN = Plugin()
