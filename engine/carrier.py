"""Carriers: how MLX holds a tensor whose dtype it may not have, and the bytes behind an MLX array.

A dtype that MLX lacks travels as uint8: F8 codes one a byte, wider or packed elements as the bytes of each row,
so `F64 (4, 3)` is carried as uint8 `(4, 24)` and `F4 (2, 8)` as uint8 `(2, 4)`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx
    from typing_extensions import Buffer

_LABELS = {dtype.mlx: dtype.name for dtype in DTYPES.values() if dtype.mlx and dtype.name[:3] != "F8_"}


def carried(spec: TensorSpec) -> TensorSpec:
    """Give the dtype (as safetensors spells MLX's) and shape under which MLX holds a tensor."""
    assert spec.dtype is not None
    dtype = DTYPES[spec.dtype]
    if dtype.mlx is None and dtype.bits != 8:
        last = spec.shape[-1] if spec.shape else 1
        return TensorSpec("U8", (*spec.shape[:-1], last * dtype.bits // 8))
    return TensorSpec(_LABELS[dtype.mlx] if dtype.mlx else "U8", spec.shape)


def spec_of(array: mx.array) -> TensorSpec:
    """Give an MLX array's dtype, as safetensors spells it, and shape."""
    name = str(array.dtype).rpartition(".")[2]
    return TensorSpec(_LABELS.get(name) or _LABELS.get(f"{name}_") or name, tuple(array.shape))


def memory_of(array: mx.array) -> memoryview:
    """Give an array's bytes, row-major; without a copy where MLX's memory is the host's."""
    import mlx.core as mx

    if prod(array.shape) == 0:
        return memoryview(b"")
    flat = mx.contiguous(array).reshape(-1).view(mx.uint8)
    mx.eval(flat)
    return memoryview(cast("Buffer", flat)).cast("B")
