"""Experts beside a feed-forward layer that every token goes through (arXiv 2401.06066): what both make is added."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.experts import Experts, SparseMlp
from weightloom.plugins.layers.routing import Router


class SharedSparseMlp(SparseMlp):
    """A router, the experts that it chooses among, and `shared`, which is called what the family calls it: `name`."""

    def __init__(
        self, experts: Experts, router: Router, k: int, shared: nn.Module, name: str, gate: str = "gate"
    ) -> None:
        super().__init__(experts, router, k, gate)
        self._shared_name = name
        self[name] = shared

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, H) -> the same shape: what the chosen experts make, weighted, and what the shared layer makes."""
        return super().__call__(x) + self.shared(x)

    def shared(self, x: mx.array) -> mx.array:
        """(B, L, H) -> what the shared layer makes, the same shape."""
        made: mx.array = self[self._shared_name](x)
        return made


class GatedSharedSparseMlp(SharedSparseMlp):
    """The same; what the shared layer makes counts by the logistic function of a score, `NAME_gate` (1, H)."""

    def __init__(
        self, experts: Experts, router: Router, k: int, shared: nn.Module, name: str, gate: str = "gate"
    ) -> None:
        super().__init__(experts, router, k, shared, name, gate)
        self._score_name = f"{name}_gate"
        self[self._score_name] = nn.Linear(experts.hidden_size, 1, bias=False)

    def shared(self, x: mx.array) -> mx.array:
        """(B, L, H) -> what the shared layer makes, times its share, the same shape."""
        share: mx.array = mx.sigmoid(self[self._score_name](x))
        return share * super().shared(x)
