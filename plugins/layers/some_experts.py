"""Feed-forward layers of Qwen's models: experts in some layers, with a shared layer beside them or none."""

from __future__ import annotations

from collections.abc import Callable

import mlx.nn as nn

from weightloom.plugins.configs.expert_fields import SharedExpertFields, SomeExpertsFields
from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.routing import Router, softmax_over_all, softmax_over_chosen
from weightloom.plugins.layers.shared_experts import GatedSharedSparseMlp


def some_experts(
    fields: SomeExpertsFields,
    layer: int,
    act: Activation,
    sparse: Callable[[Experts, Router, int], nn.Module] = SparseMlp,
) -> nn.Module:
    """Give the feed-forward part of a layer, counted from 0: a plain one, or what `sparse` makes of experts."""
    if not fields.is_sparse(layer):
        return GatedMlp(fields.hidden_size, fields.intermediate_size, act)
    experts = Experts(fields.num_experts, fields.hidden_size, fields.moe_intermediate_size, act)
    router = softmax_over_chosen if fields.norm_topk_prob else softmax_over_all
    return sparse(experts, router, fields.num_experts_per_tok)


def some_experts_and_shared(fields: SharedExpertFields, layer: int, act: Activation) -> nn.Module:
    """Give the same where experts have a shared layer, which counts by a gate, beside them."""

    def sparse(experts: Experts, router: Router, k: int) -> nn.Module:
        shared = GatedMlp(fields.hidden_size, fields.shared_expert_intermediate_size, act)
        return GatedSharedSparseMlp(experts, router, k, shared, "shared_expert")

    return some_experts(fields, layer, act, sparse)
