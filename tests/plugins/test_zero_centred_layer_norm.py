"""Layer norms that add one to their weights, against the formula in NumPy."""

import mlx.core as mx
import numpy as np

from weightloom.plugins.layers.norms import zero_centred_layer_norm


def test_values_and_dtype() -> None:
    norm = zero_centred_layer_norm(1e-3)(4)
    norm.weight, norm.bias = mx.array([0.5, -1.0, 0.0, 2.0]), mx.array([0.1, 0.2, 0.3, 0.4])
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    centred = x - x.mean(axis=-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-3)
    wanted = wanted * (1 + np.array(norm.weight)) + np.array(norm.bias)
    np.testing.assert_allclose(np.array(norm(mx.array(x))), wanted, rtol=1e-5, atol=1e-6)
    assert norm(mx.array(x).astype(mx.float16)).dtype == mx.float16
