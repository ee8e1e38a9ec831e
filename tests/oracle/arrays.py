"""Arrays of either framework as bytes, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tests.golden.reference import Tensor
from tests.oracle import peer
from weightloom.engine import Plan, TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx
    import torch


def bytes_of(array: mx.array) -> bytes:
    """The array's data, row-major."""
    import mlx.core as mx

    return np.asarray(array.reshape(-1).view(mx.uint8)).tobytes()


def to_mlx(tensor: torch.Tensor) -> tuple[Tensor, mx.array]:
    """The same dtype, shape and bits, with its spec."""
    import mlx.core as mx

    types = {"F32": mx.float32, "BF16": mx.bfloat16, "I64": mx.int64}
    spec = peer.spec_of(tensor)
    flat = mx.array(np.frombuffer(peer.bytes_of(tensor), np.uint8))
    return spec, flat.view(types[spec.dtype]).reshape(spec.shape)


def in_dtype(tensor: torch.Tensor, spec: TensorSpec) -> bytes:
    """The tensor's data in a file's dtype: where the reference widened it, that is undone."""
    import torch

    dtypes = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64}
    return peer.bytes_of(tensor.to(dtypes[spec.dtype or ""]))


def assert_same(ours: Mapping[str, mx.array], plan: Plan, theirs: Mapping[str, torch.Tensor]) -> None:
    """Bit for bit, in the dtype of the file."""
    assert sorted(ours) == sorted(theirs)
    assert [name for name in theirs if bytes_of(ours[name]) != in_dtype(theirs[name], plan.params[name])] == []


def assert_same_state(mine: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> None:
    """Bit for bit, dtypes and shapes too."""
    assert sorted(mine) == sorted(theirs)
    assert [name for name in mine if peer.spec_of(mine[name]) != peer.spec_of(theirs[name])] == []
    assert [name for name in mine if peer.bytes_of(mine[name]) != peer.bytes_of(theirs[name])] == []
