"""Linear layers computed as one: as each by itself, until one of them is replaced."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from weightloom.plugins.layers.side_by_side import side_by_side


def linears(*rows: int, bias: bool = False) -> list[nn.Module]:
    mx.random.seed(1)
    return [nn.Linear(64, each, bias=bias) for each in rows]


def packed(*rows: int, bias: bool = False, bits: int = 4) -> list[nn.Module]:
    return [nn.QuantizedLinear.from_linear(each, 32, bits) for each in linears(*rows, bias=bias)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("make", [linears, packed])
def test_values(make: type, bias: bool) -> None:
    layers, x = make(8, 3, 5, bias=bias), mx.random.normal((2, 3, 64))
    alone = [np.array(layer(x)) for layer in layers]
    names = [sorted(layer.parameters()) for layer in layers]
    joined = side_by_side(*layers)
    assert joined is not None and joined.holds(*layers)
    assert [sorted(layer.parameters()) for layer in layers] == names
    for got, after, wanted in zip(joined(x), (layer(x) for layer in layers), alone, strict=True):
        np.testing.assert_allclose(np.array(got), wanted, atol=1e-4)
        np.testing.assert_allclose(np.array(after), wanted, atol=1e-4)


def test_a_replaced_layer_or_array_is_seen() -> None:
    layers = linears(8, 3)
    joined = side_by_side(*layers)
    assert joined is not None
    assert not joined.holds(layers[0], nn.Linear(64, 3, bias=False))
    layers[1].weight = layers[1].weight + 1
    assert not joined.holds(*layers)


def test_layers_that_are_not_alike_stay_apart() -> None:
    (plain,), (biased,), (four,), (eight,) = linears(8), linears(8, bias=True), packed(8), packed(8, bits=8)
    narrow = nn.Linear(32, 8, bias=False)
    half = nn.Linear(64, 8, bias=False)
    half.set_dtype(mx.float16)
    for other in (biased, four, narrow, half, nn.Identity()):
        assert side_by_side(plain, other) is None
    assert side_by_side(four, eight) is None
