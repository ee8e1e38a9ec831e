"""The fields that configs of experts share: how many there are, and how many each token goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from weightloom.plugins.configs.checks import expert_count_field, refuse_non_positive, refuse_too_many_chosen
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields


@dataclass(frozen=True, kw_only=True)
class ExpertFields(TextFields):
    """What config.json says of a text model with experts; a family's fields are a subclass, with its own defaults."""

    num_experts: int
    num_experts_per_tok: int


@dataclass(frozen=True, kw_only=True)
class SomeExpertsFields(ExpertFields):
    """The same where layers between those with experts may have none, as in Qwen's models.

    A layer has experts if it is not in `mlp_only_layers` and its number, from 1, divides by `decoder_sparse_step`.
    """

    moe_intermediate_size: int
    norm_topk_prob: bool = False
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] | None = None

    def is_sparse(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has experts."""
        return layer not in (self.mlp_only_layers or ()) and (layer + 1) % self.decoder_sparse_step == 0


@dataclass(frozen=True, kw_only=True)
class SharedExpertFields(SomeExpertsFields):
    """The same with a layer beside the experts that every token goes through."""

    shared_expert_intermediate_size: int


F = TypeVar("F", bound=ExpertFields)


def read_experts(cls: type[F], content: Mapping[str, Any], *positive: str) -> F:
    """Read fields whose number of experts is `num_experts` or `num_local_experts`; `positive` are further sizes.

    Raises ConfigError, naming the field, for one of a wrong type, a size that is no positive number, or more experts
    for a token than there are.
    """
    count = expert_count_field(content)
    fields = read(cls, content, {"num_experts": count})
    fields.check("num_experts_per_tok", *positive)
    refuse_non_positive({count: fields.num_experts})
    refuse_too_many_chosen(fields.num_experts_per_tok, fields.num_experts, count)
    return fields
