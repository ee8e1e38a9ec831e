"""Experts without gates: each is two matrices with an activation between them."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation
from weightloom.plugins.layers.experts import Experts, Inner, QuantizedExperts
from weightloom.plugins.layers.packing import Quantization


def without_gate(act: Activation) -> Inner:
    """Give act(up)."""
    return act


class PlainExperts(Experts):
    """Feed-forward layers in stacks, down(act(up(x))): `up_proj` (E, I, H) and `down_proj` (E, H, I).

    With a `bias` each stack has one for its rows, `NAME_bias`.
    """

    def __init__(
        self,
        count: int,
        hidden_size: int,
        intermediate_size: int,
        act: Activation,
        bias: bool = False,
        inner: Callable[[Activation], Inner] = without_gate,
    ) -> None:
        nn.Module.__init__(self)
        self._made_of = (count, hidden_size, intermediate_size, act, bias, inner)
        self._inner = inner(act)
        self.up_proj = mx.zeros((count, intermediate_size, hidden_size))
        self.down_proj = mx.zeros((count, hidden_size, intermediate_size))
        if bias:
            self.up_proj_bias = mx.zeros((count, intermediate_size))
            self.down_proj_bias = mx.zeros((count, hidden_size))

    def _made(self, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        """Tokens (M, 1, H) and the expert of each, (M,), sorted if `ordered` -> (M, H)."""
        inner = self._inner(self._rows("up_proj", tokens, rows, ordered))
        return self._rows("down_proj", inner, rows, ordered)[:, 0]

    def packed(self, name: str, how: Quantization) -> QuantizedExperts:
        """Give the same layer with the stack `name` packed."""
        return QuantizedPlainExperts(self._made_of, {name: how})


class QuantizedPlainExperts(QuantizedExperts, PlainExperts):
    """The same, some stacks packed."""

    def packed(self, name: str, how: Quantization) -> QuantizedExperts:
        """Give the same layer with the stack `name` packed too."""
        return QuantizedPlainExperts(self._made_of, {**self.how, name: how})
