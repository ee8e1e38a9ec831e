"""Scoring: experts chosen by scores that are corrected, among those of the best groups (arXiv 2412.19437, 2.1.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mlx.core as mx

from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.routing import best, in_best_groups, normalised

Scores = Callable[[mx.array], mx.array]
"""What a router gives (..., E), float32 -> scores (..., E)."""
OfGroup = Callable[[mx.array], mx.array]
"""Scores of a group's experts (..., groups, n) -> the group's own (..., groups)."""


def shares(logits: mx.array) -> mx.array:
    """Give each expert's share among all, (..., E)."""
    return mx.softmax(logits, axis=-1)


def two_best(scores: mx.array) -> mx.array:
    """A group counts by the sum of its two best."""
    return mx.topk(scores, 2, axis=-1).sum(axis=-1)


def one_best(scores: mx.array) -> mx.array:
    """A group counts by its best."""
    return scores.max(axis=-1)


@dataclass(frozen=True, slots=True)
class Scoring:
    """What becomes of a router's numbers: `scores`, the best of `kept` of `groups` groups, their weights.

    Weights are the scores of those chosen, over their sum if `normalise`, times `scale`.
    """

    scores: Scores = mx.sigmoid
    groups: int = 1
    kept: int = 1
    of_group: OfGroup = two_best
    normalise: bool = True
    scale: float = 1.0

    @classmethod
    def of(cls, fields: ScoredFields) -> Scoring:
        """Give what a config says, with the logistic function for scores."""
        return cls(
            groups=fields.groups,
            kept=fields.kept_groups,
            normalise=fields.norm_topk_prob,
            scale=fields.routed_scaling_factor,
        )

    def choose(self, logits: mx.array, k: int, correction: mx.array | None = None) -> tuple[mx.array, mx.array]:
        """Give the k experts of each token, (..., k) int, and their weights, (..., k) float32, for logits (..., E).

        `correction` (E,) is added to the scores that choose, and not to those that weigh.
        """
        scores = self.scores(logits.astype(mx.float32))
        ranked = scores if correction is None else scores + correction
        if self.kept < self.groups:
            ranked = in_best_groups(ranked, self.groups, self.kept, self.of_group, outside=-mx.inf)
        chosen = best(ranked, k)
        weights = mx.take_along_axis(scores, chosen, axis=-1)
        return chosen, (normalised(weights, 1e-20) if self.normalise else weights) * self.scale
