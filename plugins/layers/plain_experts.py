"""Experts without gates: each is two matrices with an activation between them."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.experts import Experts, QuantizedExperts
from weightloom.plugins.layers.packing import Quantization


class PlainExperts(Experts):
    """Feed-forward layers in stacks, down(act(up(x))): `up_proj` (E, I, H) and `down_proj` (E, H, I)."""

    def __init__(self, count: int, hidden_size: int, intermediate_size: int, act: Activation) -> None:
        nn.Module.__init__(self)
        self._sizes = (count, hidden_size, intermediate_size)
        self._act = act
        self.up_proj = mx.zeros((count, intermediate_size, hidden_size))
        self.down_proj = mx.zeros((count, hidden_size, intermediate_size))

    def _made(self, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        """Tokens (M, 1, H) and the expert of each, (M,), sorted if `ordered` -> (M, H)."""
        inner = self._act(self.times("up_proj", tokens, rows, ordered))
        return self.times("down_proj", inner, rows, ordered)[:, 0]

    def packed(self, name: str, how: Quantization) -> QuantizedExperts:
        """Give the same layer with the stack `name` packed."""
        return QuantizedPlainExperts(self._sizes, self._act, {name: how})


class QuantizedPlainExperts(QuantizedExperts, PlainExperts):
    """The same, some stacks packed."""

    def packed(self, name: str, how: Quantization) -> QuantizedExperts:
        """Give the same layer with the stack `name` packed too."""
        return QuantizedPlainExperts(self._sizes, self._act, {**self.how, name: how})
