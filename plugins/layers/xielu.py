"""xIELU (arXiv 2411.13010): an activation whose slopes are learnt, a pair a layer."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import softplus


class Xielu(nn.Module):
    """Quadratic where positive, and below the integral of an ELU, plus a line with slope `beta`.

    The slopes are softplus(alpha_p), and beta + softplus(alpha_n), (1,) each; `beta` and `eps` () are as stored.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alpha_p = mx.zeros((1,))
        self.alpha_n = mx.zeros((1,))
        self.beta = mx.array(0.5)
        self.eps = mx.array(-1e-6)

    def __call__(self, x: mx.array) -> mx.array:
        """(...) -> the same shape, in x's dtype; computed in float32."""
        wide = x.astype(mx.float32)
        above, below = (softplus(each.astype(mx.float32)) for each in (self.alpha_p, self.alpha_n))
        bent = mx.expm1(mx.minimum(wide, self.eps)) - wide
        curved = mx.where(wide > 0, above * wide * wide, (self.beta + below) * bent)
        return (curved + self.beta * wide).astype(x.dtype)
