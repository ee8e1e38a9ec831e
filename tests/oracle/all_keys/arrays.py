"""Tensors of the reference implementation and arrays of MLX as bytes; states compared bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracle import peer
from weightloom.engine import TensorSpec
from weightloom.engine.dtypes import DTYPES

if TYPE_CHECKING:
    import mlx.core as mx
    import torch

State = Mapping[str, "torch.Tensor"]

_NAMES = {
    "torch.bfloat16": "BF16",
    "torch.bool": "BOOL",
    "torch.complex64": "C64",
    "torch.float16": "F16",
    "torch.float32": "F32",
    "torch.float64": "F64",
    "torch.int16": "I16",
    "torch.int32": "I32",
    "torch.int64": "I64",
    "torch.int8": "I8",
    "torch.uint8": "U8",
}


def state_of(model: Any) -> dict[str, torch.Tensor]:
    """The tensors of a model's state; what else a class puts there is no weight."""
    import torch

    return {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


def dtype_of(tensor: torch.Tensor) -> str:
    """The dtype as safetensors spells it."""
    return _NAMES[str(tensor.dtype)]


def specs_of(state: State, dtypes: bool = False) -> dict[str, TensorSpec]:
    """Shapes by name; dtypes too if wanted, else they are left to the file."""
    return {
        name: TensorSpec(dtype_of(tensor) if dtypes else None, tuple(tensor.shape)) for name, tensor in state.items()
    }


def to_mlx(tensor: torch.Tensor) -> mx.array:
    """The same bits; as bytes where MLX has no such dtype."""
    import mlx.core as mx

    raw = mx.array(np.frombuffer(peer.bytes_of(tensor), np.uint8))
    name = DTYPES[dtype_of(tensor)].mlx
    if name is None or not raw.size:
        return raw if name is None else mx.zeros(tuple(tensor.shape), getattr(mx, name))
    return raw.view(getattr(mx, name)).reshape(tuple(tensor.shape))


def raw_bytes(array: mx.array) -> bytes:
    """The array's data, row-major."""
    import mlx.core as mx

    return np.asarray(array.reshape(-1).view(mx.uint8)).tobytes() if array.size else b""


def differences(ours: Mapping[str, mx.array], specs: Mapping[str, TensorSpec], theirs: State) -> list[str]:
    """Name what differs from their state, ours cast where they changed the dtype of the file."""
    found = [f"only in one of both: {name}" for name in sorted(set(ours) ^ set(theirs))]
    for name in sorted(set(ours) & set(theirs)):
        if specs[name].shape != tuple(theirs[name].shape):
            found.append(f"shape of {name}")
        elif _cast(raw_bytes(ours[name]), specs[name].dtype, theirs[name]) != peer.bytes_of(theirs[name]):
            found.append(f"bytes of {name}")
    return found


def state_differences(one: State, other: State) -> list[str]:
    """Name the tensors that two states do not have alike: bit for bit, or in the narrower of two precisions."""
    found = [f"only in one of both: {name}" for name in sorted(set(one) ^ set(other))]
    return found + [name for name in sorted(set(one) & set(other)) if not _alike(one[name], other[name])]


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_floating_point() and other.is_floating_point():
        narrower = min(one.dtype, other.dtype, key=lambda dtype: dtype.itemsize)
        one, other = one.to(narrower), other.to(narrower)
    return one.shape == other.shape and one.dtype == other.dtype and peer.bytes_of(one) == peer.bytes_of(other)


def _cast(raw: bytes, dtype: str | None, like: torch.Tensor) -> bytes:
    """The same values in another tensor's dtype."""
    import torch

    if dtype is None or dtype == dtype_of(like) or not raw:
        return raw
    torch_name = next(name for name, known in _NAMES.items() if known == dtype).removeprefix("torch.")
    return peer.bytes_of(torch.frombuffer(bytearray(raw), dtype=getattr(torch, torch_name)).to(like.dtype))
