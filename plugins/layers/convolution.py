"""Short convolutions over time: each channel is filtered by itself, and a token sees those before it."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.state import State, without_padding


class CausalConv1d(nn.Module):
    """A filter a channel, `weight` (C, 1, K) as published, the newest token last, and `bias` (C,) if any."""

    def __init__(self, channels: int, width: int, bias: bool = False) -> None:
        super().__init__()
        self.weight = mx.zeros((channels, 1, width))
        if bias:
            self.bias = mx.zeros((channels,))

    def __call__(self, x: mx.array, state: State, name: str = "conv", activation: Activation | None = None) -> mx.array:
        """Filter tokens (B, L, C) after the K - 1 that `state` keeps under `name`; what fills up a row counts as 0.

        The state's count of tokens stays: its layer adds to it once, when all is kept.
        """
        channels, _, width = self.weight.shape
        joined = self._joined(without_padding(x, state), state.get(name))
        state.put(0, **{name: joined[:, joined.shape[1] - (width - 1) :]})
        made = mx.conv1d(joined, self.weight.reshape(channels, width, 1), groups=channels)
        made = made + self.bias if "bias" in self else made
        return made if activation is None else activation(made)

    def _joined(self, x: mx.array, before: mx.array | None) -> mx.array:
        """Put x (B, L, C) after what was `before`, (B, K - 1, C): 0 before the first token."""
        if before is None:
            before = mx.zeros((x.shape[0], self.weight.shape[2] - 1, x.shape[2]), x.dtype)
        return mx.concatenate([before, x], axis=1)
