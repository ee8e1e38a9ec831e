"""In which precision a job's checkpoint is written: one for all, or matrices narrower than the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.golden.reference import Tensor
from tests.oracle import peer
from tests.oracle.all_keys.published import rewrite

if TYPE_CHECKING:
    import torch

MIXED = "mixed"


def _to_float32(model: torch.nn.Module) -> None:
    model.float()


def _to_bfloat16(model: torch.nn.Module) -> None:
    model.bfloat16()


def _with_narrow_matrices(model: torch.nn.Module) -> None:
    """Round to what BF16 holds; vectors, which stay F32 in the file, keep their bits."""
    import torch

    model.float()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point() and tensor.ndim > 1:
                tensor.copy_(tensor.bfloat16())


PREPARED: Mapping[str, Callable[[Any], None]] = {
    "float32": _to_float32,
    "bfloat16": _to_bfloat16,
    MIXED: _with_narrow_matrices,
}


def narrow_matrices(directory: Path) -> None:
    """Make a file's F32 matrices BF16, and say so in the config, as files with vectors of full precision do."""
    rewrite(directory, lambda held: {name: _narrow(*one) for name, one in held.items()})
    config = peer.config_of(directory) | {"dtype": "bfloat16"}
    (directory / "config.json").write_text(json.dumps(config))


def _narrow(tensor: Tensor, raw: bytes) -> tuple[Tensor, bytes]:
    if tensor.dtype != "F32" or len(tensor.shape) < 2:
        return tensor, raw
    upper = (np.frombuffer(raw, "<u4") >> 16).astype("<u2")
    return Tensor("BF16", tensor.shape), upper.tobytes()
