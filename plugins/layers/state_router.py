"""A router with a norm of its own: it looks at the state that a feed-forward layer begins with (Gemma 4)."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.norms import UnweightedNorm
from weightloom.plugins.layers.routing import softmax_over_chosen


class StateRouter(nn.Module):
    """Chooses each token's experts by its normed state times `scale`, and weighs them by `per_expert_scale` too."""

    def __init__(self, hidden_size: int, count: int, chosen: int, eps: float) -> None:
        super().__init__()
        self._chosen = chosen
        self._norm = UnweightedNorm(eps)
        self.proj = nn.Linear(hidden_size, count, bias=False)
        self.scale = mx.ones((hidden_size,))
        self.per_expert_scale = mx.ones((count,))

    def __call__(self, tokens: mx.array) -> tuple[mx.array, mx.array]:
        """Tokens (N, hidden_size) -> the experts of each, (N, k) int, and their weights, (N, k) float32."""
        scores = self.proj(self._norm(tokens) * self.scale * tokens.shape[-1] ** -0.5)
        chosen, weights = softmax_over_chosen(scores, self._chosen)
        return chosen, weights * self.per_expert_scale[chosen]
