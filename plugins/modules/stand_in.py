"""Arrays that only look like parameters: shape and dtype are there, memory is not."""

from __future__ import annotations

import mlx.core as mx

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.spec import TensorSpec


def stand_in(spec: TensorSpec) -> mx.array:
    """Give an array of NaNs (of integers: zeros) of a parameter's dtype and shape, a view of a single number."""
    dtype = getattr(mx, DTYPES[spec.dtype or ""].mlx or "uint8")
    value = float("nan") if mx.issubdtype(dtype, mx.inexact) else 0
    return mx.broadcast_to(mx.array(value, dtype), spec.shape)
