"""Tiny models whose rows divide into groups of 64, with configs that mlx-lm reads too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from tests.runtime.models import config_of, write_model
from weightloom.engine.quantizing.quantization import Quantization, part_names

COMMON: dict[str, Any] = {"hidden_size": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}
SIZES: dict[str, dict[str, Any]] = {
    "llama": {"intermediate_size": 128},
    "mixtral": {"intermediate_size": 128},
    "qwen3_moe": {
        "intermediate_size": 128,
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
    },
}
IDS = [[1, 2, 3, 4, 5]]


def packable(folder: Path, name: str = "llama", **changes: Any) -> Path:
    """Write a plain checkpoint in F32 as it is published."""
    return write_model(folder, name, config_of(name, **{**COMMON, **SIZES[name], **changes}))


def config_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def arrays_in(folder: Path) -> dict[str, mx.array]:
    found: dict[str, mx.array] = {}
    for file in sorted(folder.glob("model*.safetensors")):
        loaded = mx.load(str(file))
        assert isinstance(loaded, dict)
        found |= loaded
    return found


def packed_parts(name: str, matrix: mx.array, how: Quantization) -> dict[str, mx.array]:
    """What MLX makes of a matrix, by name."""
    made = mx.quantize(matrix, how.group_size, how.bits, how.mode)
    return dict(zip(part_names(name), made, strict=False))


def assert_same(found: mx.array, expected: mx.array, name: str = "") -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
    np.testing.assert_array_equal(np.array(found.view(mx.uint8)), np.array(expected.view(mx.uint8)), name)


def logits(model: Any) -> Any:
    return np.array(model(mx.array(IDS)).astype(mx.float32))
