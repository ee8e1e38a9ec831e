"""Experts without gates against matrices multiplied one by one, as they are and packed."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.activations import relu_squared
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.layers.plain_experts import PlainExperts, QuantizedPlainExperts

COUNT, HIDDEN, INNER = 4, 32, 64
RANDOM = np.random.default_rng(4)
STACKS = ("up_proj", "down_proj")
Array = np.ndarray[Any, Any]


def experts(bias: bool) -> PlainExperts:
    made = PlainExperts(COUNT, HIDDEN, INNER, relu_squared, bias)
    made.up_proj = mx.array(RANDOM.standard_normal((COUNT, INNER, HIDDEN)).astype(np.float32))
    made.down_proj = mx.array(RANDOM.standard_normal((COUNT, HIDDEN, INNER)).astype(np.float32))
    if bias:
        made.up_proj_bias = mx.array(RANDOM.standard_normal((COUNT, INNER)).astype(np.float32))
        made.down_proj_bias = mx.array(RANDOM.standard_normal((COUNT, HIDDEN)).astype(np.float32))
    return made


def one_by_one(layer: PlainExperts, x: Array, chosen: Array) -> Array:
    up, down = (np.array(layer.dense(name)) for name in STACKS)
    up_bias, down_bias = (np.array(layer.get(f"{name}_bias", mx.zeros((COUNT, 1)))) for name in STACKS)
    made = np.zeros((*chosen.shape, HIDDEN))
    for token, number in np.ndindex(chosen.shape):
        expert = chosen[token, number]
        inner = np.maximum(up[expert] @ x[token] + up_bias[expert], 0) ** 2
        made[token, number] = down[expert] @ inner + down_bias[expert]
    return made


@pytest.mark.parametrize("tokens", [3, 50])
@pytest.mark.parametrize("packed", [(), ("up_proj",), STACKS])
@pytest.mark.parametrize("bias", [False, True])
def test_values(tokens: int, packed: tuple[str, ...], bias: bool) -> None:
    plain = made = experts(bias)
    for name in packed:
        made = made.packed(name, Quantization(bits=4, group_size=32, mode="affine"))
        assert isinstance(made, QuantizedPlainExperts)
    for name, array in plain.parameters().items():
        if name in packed:
            made[name], made[f"{name}_scales"], made[f"{name}_biases"] = mx.quantize(array, 32, 4)
        else:
            made[name] = array
    x = RANDOM.standard_normal((tokens, HIDDEN)).astype(np.float32)
    chosen = RANDOM.integers(0, COUNT, (tokens, 2))
    wanted = one_by_one(made, x, chosen)
    got = np.array(made(mx.array(x), mx.array(chosen)))
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())
