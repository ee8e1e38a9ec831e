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
Array = np.ndarray[Any, Any]


def experts() -> PlainExperts:
    made = PlainExperts(COUNT, HIDDEN, INNER, relu_squared)
    made.up_proj = mx.array(RANDOM.standard_normal((COUNT, INNER, HIDDEN)).astype(np.float32))
    made.down_proj = mx.array(RANDOM.standard_normal((COUNT, HIDDEN, INNER)).astype(np.float32))
    return made


def one_by_one(up: Array, down: Array, x: Array, chosen: Array) -> Array:
    made = np.zeros((*chosen.shape, HIDDEN))
    for token, number in np.ndindex(chosen.shape):
        expert = chosen[token, number]
        made[token, number] = down[expert] @ np.maximum(up[expert] @ x[token], 0) ** 2
    return made


@pytest.mark.parametrize("tokens", [3, 50])
@pytest.mark.parametrize("packed", [(), ("up_proj",), ("up_proj", "down_proj")])
def test_values(tokens: int, packed: tuple[str, ...]) -> None:
    layer = experts()
    x = RANDOM.standard_normal((tokens, HIDDEN)).astype(np.float32)
    chosen = RANDOM.integers(0, COUNT, (tokens, 2))
    plain, made = layer, layer
    for name in packed:
        made = made.packed(name, Quantization(bits=4, group_size=32, mode="affine"))
        assert isinstance(made, QuantizedPlainExperts)
    for name in ("up_proj", "down_proj"):
        if name in packed:
            made[name], made[f"{name}_scales"], made[f"{name}_biases"] = mx.quantize(plain[name], 32, 4)
        else:
            made[name] = plain[name]
    wanted = one_by_one(*(np.array(made.dense(name)) for name in ("up_proj", "down_proj")), x, chosen)
    got = np.array(made(mx.array(x), mx.array(chosen)))
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())
