"""Norms of what has turned, against the formula in NumPy."""

from typing import Any

import mlx.core as mx
import numpy as np

from weightloom.plugins.configs.rope_config import read_rope
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.late_norm_attention import LateNormAttention
from weightloom.plugins.layers.rope import Rope


def turned(heads: Any, first: int) -> Any:
    """Two dims a head turn by one radian a position."""
    angles = np.arange(first, first + heads.shape[2])
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = heads[..., 0], heads[..., 1]
    return np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)


def test_queries_and_keys_are_normed_after_they_have_turned() -> None:
    rope = Rope(read_rope({}, 2, 64)["full_attention"], 2)
    attention = LateNormAttention(AttentionShape(8, heads=4, kv_heads=2, head_dim=2), rope, 1e-5)
    attention.query_layernorm.weight = mx.array([0.5, 2.0])
    attention.key_layernorm.weight = mx.array([3.0, -1.0])
    given = [np.random.default_rng(1).standard_normal((1, heads, 3, 2)).astype(np.float32) for heads in (4, 2)]
    placed = attention.placed(mx.array(given[0]), mx.array(given[1]), 5)
    for got, heads, weight in zip(placed, given, ([0.5, 2.0], [3.0, -1.0]), strict=True):
        found = turned(heads, 5)
        wanted = found / np.sqrt((found**2).mean(axis=-1, keepdims=True) + 1e-5) * np.array(weight)
        np.testing.assert_allclose(np.array(got), wanted, rtol=1e-4, atol=1e-5)
