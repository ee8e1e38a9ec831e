"""Norms over the whole width of queries and keys, against the formula in NumPy."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map

from weightloom.plugins.layers.attention import AttentionShape, WideNormAttention


def rms(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * weight


def test_all_heads_share_one_norm() -> None:
    mx.random.seed(2)
    attention = WideNormAttention(AttentionShape(8, heads=4, kv_heads=2, head_dim=2), None, 1e-5)
    attention.update(tree_map(lambda array: mx.random.normal(array.shape), attention.parameters()))
    x = mx.random.normal((1, 3, 8))
    queries, keys, values = (np.array(each) for each in attention.normed(*attention.project(x)))
    plain = np.array(x)
    for got, name, heads in ((queries, "q", 4), (keys, "k", 2)):
        weight, norm = (np.array(attention[f"{name}_{part}"].weight) for part in ("proj", "norm"))
        wanted = rms(plain @ weight.T, norm).reshape(1, 3, heads, 2)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    wanted = (plain @ np.array(attention.v_proj.weight).T).reshape(1, 3, 2, 2)
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)
