"""The fields of configs with latent attention and scored experts, as DeepSeek's have them."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.plugins.configs.latent_fields import LatentFields
from weightloom.plugins.configs.scored_fields import ScoredFields


@dataclass(frozen=True, kw_only=True)
class LatentExpertFields(ScoredFields, LatentFields):
    """What config.json says of both; a family's fields are a subclass, with its own defaults."""

    def check_all(self, of_group: int = 2) -> None:
        """Raise ConfigError, naming the field, for what does not fit; a group has `of_group` experts at least."""
        self.check()
        self.check_parts()
        self.check_experts(of_group)


@dataclass(frozen=True, kw_only=True)
class DeepSeekV3Fields(LatentExpertFields):
    """The same with the published defaults of DeepSeek-V3 and what follows it."""

    vocab_size: int = 129280
    hidden_size: int = 7168
    intermediate_size: int = 18432
    num_hidden_layers: int = 61
    num_attention_heads: int = 128
    moe_intermediate_size: int = 2048
    n_routed_experts: int = 256
    n_shared_experts: int | None = 1
    num_experts_per_tok: int = 8
    first_k_dense_replace: int = 3
    n_group: int | None = 8
    topk_group: int | None = 4
    routed_scaling_factor: float = 2.5
