"""Feed-forward layers against products written out in NumPy."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from weightloom.plugins.layers.activations import relu, relu_squared
from weightloom.plugins.layers.mlp import FusedMlp, GatedMlp, PlainMlp

RANDOM = np.random.default_rng(5)


def matrix(rows: int, columns: int) -> Any:
    return RANDOM.standard_normal((rows, columns)).astype(np.float32)


def filled(module: nn.Module, **weights: Any) -> Any:
    module.load_weights([(f"{name}.weight", mx.array(weight)) for name, weight in weights.items()])
    return module


def test_gated_by_its_own_names() -> None:
    gate, up, down, x = matrix(8, 4), matrix(8, 4), matrix(4, 8), matrix(3, 4)
    mlp = filled(GatedMlp(4, 8, relu, names=("w1", "w3", "w2")), w1=gate, w3=up, w2=down)
    wanted = (np.maximum(x @ gate.T, 0) * (x @ up.T)) @ down.T
    np.testing.assert_allclose(np.array(mlp(mx.array(x))), wanted, rtol=2e-5, atol=1e-5)
    assert mlp.fuse()
    np.testing.assert_allclose(np.array(mlp(mx.array(x))), wanted, rtol=2e-5, atol=1e-5)


def test_fused_the_gate_comes_first() -> None:
    both, down, x = matrix(16, 4), matrix(4, 8), matrix(3, 4)
    mlp = filled(FusedMlp(4, 8, relu), gate_up_proj=both, down_proj=down)
    gate, up = x @ both[:8].T, x @ both[8:].T
    np.testing.assert_allclose(np.array(mlp(mx.array(x))), (np.maximum(gate, 0) * up) @ down.T, rtol=2e-5, atol=1e-5)


def test_plain_by_its_own_names() -> None:
    up, down, x = matrix(8, 4), matrix(4, 8), matrix(3, 4)
    mlp = filled(PlainMlp(4, 8, relu_squared, names=("fc1", "fc2")), fc1=up, fc2=down)
    wanted = np.maximum(x @ up.T, 0) ** 2 @ down.T
    np.testing.assert_allclose(np.array(mlp(mx.array(x))), wanted, rtol=2e-5, atol=1e-5)


def test_plain_with_biases() -> None:
    mlp = PlainMlp(4, 8, relu, bias=True)
    assert mlp.up_proj.bias.shape == (8,)
    assert mlp.down_proj.bias.shape == (4,)
