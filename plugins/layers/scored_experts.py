"""Experts as DeepSeek-V3 has them: scores that a correction balances, and experts that every token goes through."""

from __future__ import annotations

from collections.abc import Mapping

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.cuts import EXPERTS, gated
from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.scoring import Scoring

CUTS: Mapping[str, str] = {**gated("mlp", "shared_experts"), **EXPERTS}
"""How the parameters of all these layers are cut among ranks; each rank chooses among all experts."""


class ScoredGate(nn.Module):
    """A router, `weight` (E, H), and what is added to its scores to choose, `e_score_correction_bias` (E,), if any.

    It is no linear layer, so that it is never packed: experts that score alike would change places.
    """

    def __init__(self, count: int, hidden_size: int, corrected: bool) -> None:
        super().__init__()
        self.weight = mx.zeros((count, hidden_size))
        if corrected:
            self.e_score_correction_bias = mx.zeros((count,))

    def __call__(self, tokens: mx.array) -> mx.array:
        """Tokens (N, H) -> what scores are made of, (N, E) float32."""
        return tokens.astype(mx.float32) @ self.weight.astype(mx.float32).T


class ScoredSparseMlp(SparseMlp):
    """A `gate`, the `experts` that it chooses among, and `shared_experts`, one wide layer, if any.

    The gate is a `ScoredGate`; `corrected` says whether it has a correction.
    """

    def __init__(
        self, experts: Experts, scoring: Scoring, k: int, shared: nn.Module | None = None, corrected: bool = True
    ) -> None:
        super().__init__(experts, scoring.choose, k)
        self._scoring = scoring
        self["gate"] = ScoredGate(experts.count, experts.hidden_size, corrected)
        if shared is not None:
            self.shared_experts = shared

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, H) -> the same shape: what the chosen experts make, weighted, and what the shared ones make."""
        mixed = super().__call__(x)
        return mixed + self.shared_experts(x) if "shared_experts" in self else mixed

    def choose(self, tokens: mx.array) -> tuple[mx.array, mx.array]:
        """Tokens (N, H) -> the experts of each, (N, k) int, and their weights, (N, k) float32."""
        return self._scoring.choose(self.scores(tokens), self._k, self.correction)

    @property
    def correction(self) -> mx.array | None:
        """What is added to scores to choose, (E,), if anything."""
        found: mx.array | None = self["gate"].get("e_score_correction_bias")
        return found


class LinearScoredSparseMlp(ScoredSparseMlp):
    """The same where `gate` is a linear layer, which may be packed, and `e_score_correction_bias` stands beside it."""

    def __init__(
        self, experts: Experts, scoring: Scoring, k: int, shared: nn.Module | None = None, corrected: bool = True
    ) -> None:
        super().__init__(experts, scoring, k, shared, corrected=False)
        self["gate"] = nn.Linear(experts.hidden_size, experts.count, bias=False)
        if corrected:
            self.e_score_correction_bias = mx.zeros((experts.count,))

    @property
    def correction(self) -> mx.array | None:
        """What is added to scores to choose, (E,), if anything."""
        found: mx.array | None = self.get("e_score_correction_bias")
        return found


def feed_forward(
    fields: ScoredFields,
    layer: int,
    act: Activation,
    scoring: Scoring,
    corrected: bool = True,
    kind: type[ScoredSparseMlp] = ScoredSparseMlp,
) -> nn.Module:
    """Give the feed-forward part of a layer, counted from 0: a plain one in the first layers, then one of `kind`."""
    if not fields.is_sparse(layer):
        return GatedMlp(fields.hidden_size, fields.intermediate_size, act, fields.mlp_bias)
    experts = Experts(fields.n_routed_experts, fields.hidden_size, fields.moe_intermediate_size, act)
    wide = fields.shared_width
    shared = GatedMlp(fields.hidden_size, wide, act, fields.mlp_bias) if wide else None
    return kind(experts, scoring, fields.num_experts_per_tok, shared, corrected)
