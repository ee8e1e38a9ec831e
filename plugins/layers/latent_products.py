"""The two halves of the product that makes keys and values of latent vectors, each by itself and from either side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn


@dataclass(frozen=True, slots=True, eq=False)
class LatentProducts:
    """A layer (heads * rows, rank): of each head's `rows` the first `keys` make keys, the others values."""

    layer: nn.Module
    rows: int
    keys: int
    rank: int

    def queries(self, queries: mx.array) -> mx.array:
        """Queries (B, heads, L, keys) -> what latent vectors are multiplied by for keys, (B, heads, L, rank)."""
        if type(self.layer) is nn.QuantizedLinear:
            return self._packed(queries, slice(self.keys), transpose=False)
        return queries @ self._matrices(queries.dtype)[:, : self.keys]

    def values(self, mixed: mx.array) -> mx.array:
        """A mix of latent vectors (B, heads, L, rank) -> that of the values that they make, (B, heads, L, ...)."""
        if type(self.layer) is nn.QuantizedLinear:
            return self._packed(mixed, slice(self.keys, None), transpose=True)
        return mixed @ self._matrices(mixed.dtype)[:, self.keys :].swapaxes(-1, -2)

    def _matrices(self, dtype: mx.Dtype) -> mx.array:
        """Give (heads, rows, rank)."""
        if type(self.layer) is nn.Linear:
            return self._by_head(self.layer.weight)
        # Whatever else stands here, with an adapter beside it, say: what it makes of each unit vector.
        return self._by_head(self.layer(mx.eye(self.rank, dtype=dtype)).T)

    def _packed(self, x: mx.array, part: slice, transpose: bool) -> mx.array:
        layer: Any = self.layer
        weight, scales, *biases = (
            self._by_head(layer[name])[:, part] for name in ("weight", "scales", "biases") if name in layer
        )
        how = (layer.group_size, layer.bits, layer.mode)
        return mx.quantized_matmul(x, weight, scales, biases[0] if biases else None, transpose, *how)

    def _by_head(self, matrix: mx.array) -> mx.array:
        return matrix.reshape(-1, self.rows, matrix.shape[-1])
