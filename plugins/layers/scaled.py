"""Packed layers whose rows have a factor each beside their scales, as NVFP4 has one for a whole weight."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn


def without_overflow(x: mx.array) -> mx.array:
    """Give what is multiplied by codes alone: that is some thousand times what comes of it, too much for float16."""
    return x.astype(mx.float32) if x.dtype == mx.float16 else x


def times_rows(made: mx.array, factors: mx.array) -> mx.array:
    """Multiply a product by the factors of its rows, in F32; gives the product's dtype."""
    return (made.astype(mx.float32) * factors).astype(made.dtype)


class ScaledLinear(nn.QuantizedLinear):
    """A packed linear layer with `global_scale` (outputs, 1), F32: each output times its own."""

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool,
        group_size: int,
        bits: int,
        mode: str,
    ) -> None:
        super().__init__(input_dims, output_dims, bias, group_size, bits, mode)
        self.global_scale = mx.ones((output_dims, 1))

    def __call__(self, x: mx.array) -> mx.array:
        """(..., inputs) -> (..., outputs)."""
        made = self.product(x)
        return made + self["bias"] if "bias" in self else made

    def product(self, x: mx.array) -> mx.array:
        """The same without the bias."""
        return _product(self, without_overflow(x)).astype(x.dtype)


class ScaledEmbedding(nn.QuantizedEmbedding):
    """A packed embedding with `global_scale` (rows, 1), F32: each row times its own."""

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: int,
        bits: int,
        mode: str,
    ) -> None:
        super().__init__(num_embeddings, dims, group_size, bits, mode)
        self.global_scale = mx.ones((num_embeddings, 1))

    def __call__(self, x: mx.array) -> mx.array:
        """Ids (...) -> (..., dims)."""
        return times_rows(super().__call__(x), self["global_scale"][x])

    def as_linear(self, x: mx.array) -> mx.array:
        """(..., dims) -> scores (..., rows)."""
        return _product(self, without_overflow(x)).astype(x.dtype)


def unpacked(layer: ScaledLinear | ScaledEmbedding) -> mx.array:
    """Give the matrix (rows, columns) of a layer."""
    how = (layer.group_size, layer.bits, layer.mode)
    return times_rows(mx.dequantize(layer["weight"], layer["scales"], layer.get("biases"), *how), layer["global_scale"])


def _product(layer: nn.QuantizedLinear | nn.QuantizedEmbedding, x: mx.array) -> mx.array:
    made = mx.quantized_matmul(
        x,
        layer["weight"],
        scales=layer["scales"],
        biases=layer.get("biases"),
        transpose=True,
        group_size=layer.group_size,
        bits=layer.bits,
        mode=layer.mode,
    )
    return times_rows(made, layer["global_scale"][:, 0])
