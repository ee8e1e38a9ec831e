"""Heads that count as if their weights, as they are stored, were of length 1: row by row, or column by column."""

from __future__ import annotations

from typing import Any, ClassVar

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.decoder import CausalLM

_SHORTEST = 1e-7


class _NormHeadLM(CausalLM):
    _axis: ClassVar[int]
    _lengths: tuple[mx.array, mx.array] | None = None

    def lengths(self) -> mx.array:
        """Give the lengths, float32, worked out once for the head's weights."""
        head = self["lm_head"]
        weight = head.weight
        if self._lengths is None or self._lengths[0] is not weight:
            found = mx.linalg.norm(_matrix(head), axis=self._axis) + _SHORTEST
            # Past the module's own way, which would make parameters of them.
            object.__setattr__(self, "_lengths", (weight, found))
        assert self._lengths is not None
        return self._lengths[1]


class ColumnNormHeadLM(_NormHeadLM):
    """A model whose head counts as if each column of its weights were of length 1."""

    _axis = 0

    def head(self, hidden: mx.array) -> mx.array:
        """Hidden states (B, L, hidden_size) -> logits (B, L, vocab)."""
        return super().head((hidden / self.lengths()).astype(hidden.dtype))


class RowNormHeadLM(_NormHeadLM):
    """A model whose head counts as if each row of its weights, one a token, were of length 1."""

    _axis = 1

    def head(self, hidden: mx.array) -> mx.array:
        """Hidden states (B, L, hidden_size) -> logits (B, L, vocab)."""
        return (super().head(hidden) / self.lengths()).astype(hidden.dtype)


def _matrix(layer: Any) -> mx.array:
    weight = layer.weight
    if isinstance(layer, nn.QuantizedLinear):
        how = (layer.group_size, layer.bits, layer.mode)
        weight = mx.dequantize(weight, layer.scales, layer.get("biases"), *how)
    found: mx.array = weight.astype(mx.float32)
    return found
