"""Short convolutions against sums worked out token by token."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.activations import relu
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.convolution import CausalConv1d
from weightloom.plugins.layers.state import StateCache

CHANNELS, LENGTH = 5, 9
X = np.random.default_rng(3).standard_normal((2, LENGTH, CHANNELS)).astype(np.float32)


def layer(width: int, bias: bool) -> CausalConv1d:
    made, random = CausalConv1d(CHANNELS, width, bias), np.random.default_rng(width)
    made.weight = mx.array(random.standard_normal((CHANNELS, 1, width)).astype(np.float32))
    if bias:
        made.bias = mx.array(random.standard_normal(CHANNELS).astype(np.float32))
    return made


def token_by_token(conv: CausalConv1d, x: np.ndarray) -> np.ndarray:
    weight, bias = np.array(conv.weight)[:, 0], np.array(conv.bias) if "bias" in conv else 0
    width, out = weight.shape[1], np.zeros_like(x)
    for now in range(x.shape[1]):
        for back in range(min(width, now + 1)):
            out[:, now] += weight[:, width - 1 - back] * x[:, now - back]
    return out + bias


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("bias", [False, True])
def test_values(width: int, bias: bool) -> None:
    conv = layer(width, bias)
    wanted = token_by_token(conv, X)
    np.testing.assert_allclose(np.array(conv(mx.array(X), NoCache())), wanted, atol=1e-5)
    np.testing.assert_allclose(np.array(conv(mx.array(X), NoCache(), "c", relu)), np.maximum(wanted, 0), atol=1e-5)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_parts_are_as_the_whole(width: int) -> None:
    conv, state, parts = layer(width, True), StateCache(), []
    for start, stop in ((0, 1), (1, 5), (5, 6), (6, LENGTH)):
        parts.append(conv(mx.array(X[:, start:stop]), state, "c"))
        state.put(stop - start)
    np.testing.assert_allclose(np.array(mx.concatenate(parts, axis=1)), token_by_token(conv, X), atol=1e-5)
    assert state.offset == LENGTH
    assert state.get("c").shape == (2, width - 1, CHANNELS)


def test_what_fills_up_a_row_counts_as_nothing() -> None:
    conv, state = layer(3, True), StateCache()
    state.padding = mx.array([0, 4])
    got = np.array(conv(mx.array(X), state))
    np.testing.assert_allclose(got[:1], token_by_token(conv, X[:1]), atol=1e-5)
    np.testing.assert_allclose(got[1:, 4:], token_by_token(conv, X[1:, 4:]), atol=1e-5)
