"""The gated feed-forward layer."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation, gated


class GatedMlp(nn.Module):
    """down(act(gate(x)) * up(x)), arXiv 2002.05202; parameters `gate_proj`, `up_proj`, `down_proj`."""

    def __init__(self, hidden_size: int, intermediate_size: int, act: Activation, bias: bool = False) -> None:
        super().__init__()
        self._product = gated(act)
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        return self.down_proj(self._product(self.gate_proj(x), self.up_proj(x)))
