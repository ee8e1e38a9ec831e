"""Norms beside MLX's own: options of a module where others change the stored values."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn

Norm = Callable[[int], nn.Module]
"""Makes the norm of so many numbers."""


def rms_norm(eps: float) -> Norm:
    """Give what makes plain RMS norms (arXiv 1910.07467)."""
    return lambda size: nn.RMSNorm(size, eps)


def zero_centred_norm(eps: float, centre: float = 1.0) -> Norm:
    """Give what makes RMS norms whose weight is what is added to `centre`."""
    return lambda size: ZeroCentredNorm(size, eps, centre)


def narrowing_norm(eps: float) -> Norm:
    """Give what makes RMS norms of residuals that may be float32 whatever the parameters are."""
    return lambda size: NarrowingNorm(size, eps)


def layer_norm(eps: float, bias: bool = True) -> Norm:
    """Give what makes layer norms (arXiv 1607.06450)."""
    return lambda size: nn.LayerNorm(size, eps, bias=bias)


def zero_centred_layer_norm(eps: float) -> Norm:
    """Give what makes layer norms whose weight is what is added to 1."""
    return lambda size: ZeroCentredLayerNorm(size, eps)


class ZeroCentredNorm(nn.Module):
    """An RMS norm that multiplies by `centre` + weight (size,), Gemma's by 1 + it; the stored weight stays as it is."""

    def __init__(self, size: int, eps: float, centre: float = 1.0) -> None:
        super().__init__()
        self._eps = eps
        self._centre = centre
        self.weight = mx.zeros((size,))

    def __call__(self, x: mx.array) -> mx.array:
        """(..., size) -> the same shape, in x's dtype."""
        # Added in float32: 1 + w has fewer bits left for w in 16.
        return mx.fast.rms_norm(x, self._centre + self.weight.astype(mx.float32), self._eps).astype(x.dtype)


class ZeroCentredLayerNorm(nn.Module):
    """A layer norm that multiplies by 1 + weight and adds bias, (size,) each; the stored weight stays as it is."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self._eps = eps
        self.weight = mx.zeros((size,))
        self.bias = mx.zeros((size,))

    def __call__(self, x: mx.array) -> mx.array:
        """(..., size) -> the same shape, in x's dtype."""
        weight, bias = 1 + self.weight.astype(mx.float32), self.bias.astype(mx.float32)
        return mx.fast.layer_norm(x, weight, bias, self._eps).astype(x.dtype)


class NarrowingNorm(nn.RMSNorm):
    """An RMS norm that gives its weight's dtype, whatever comes."""

    def __call__(self, x: mx.array) -> mx.array:
        """(..., size) -> the same shape, in the weight's dtype."""
        return mx.fast.rms_norm(x, self.weight, self.eps).astype(self.weight.dtype)


class UnweightedNorm(nn.Module):
    """An RMS norm without parameters."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self._eps = eps

    def __call__(self, x: mx.array) -> mx.array:
        """(..., size) -> the same shape."""
        return mx.fast.rms_norm(x, None, self._eps)


class PerHeadLayerNorm(nn.Module):
    """A layer norm over each head's dims with a weight a head, (heads, head_dim), and no bias."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        super().__init__()
        self._eps = eps
        self.weight = mx.ones((heads, head_dim))

    def __call__(self, x: mx.array) -> mx.array:
        """(..., heads, head_dim) -> the same shape."""
        return mx.fast.layer_norm(x, None, None, self._eps) * self.weight
