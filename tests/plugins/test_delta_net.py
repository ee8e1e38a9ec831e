"""Linear attention by the gated delta rule against its formulas, token by token in NumPy."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.activations import silu
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.delta_net import DeltaNet, DeltaShape, GatedNorm, Projected
from weightloom.plugins.layers.state import StateCache

HIDDEN, LENGTH, WIDTH = 6, 9, 3
KEY_HEADS, HEADS, KEY, VALUE = 1, 2, 3, 4
PARTS = (2 * KEY_HEADS * KEY + HEADS * VALUE, HEADS * VALUE, HEADS, HEADS)
X = np.random.default_rng(5).standard_normal((2, LENGTH, HIDDEN)).astype(np.float32)


class Plain(DeltaNet):
    """One whose projection is one matrix, and whose result is what was read times the gate."""

    def __init__(self, top_rate: float) -> None:
        shape = DeltaShape(HIDDEN, KEY_HEADS, HEADS, KEY, VALUE, WIDTH, top_rate)
        super().__init__(shape, silu, {"made": sum(PARTS)})
        random = np.random.default_rng(6)
        arrays = (self.made, "weight"), (self.conv1d, "weight"), (self, "dt_bias"), (self, "A_log")
        for module, name in arrays:
            module[name] = mx.array(random.standard_normal(module[name].shape).astype(np.float32))

    def project(self, x: mx.array) -> Projected:
        ends = np.cumsum(PARTS)[:-1].tolist()
        return Projected(*mx.split(self.projected(x)[0], ends, axis=-1))

    def out(self, read: mx.array, gate: mx.array) -> mx.array:
        return (read * gate).flatten(2)


def token_by_token(layer: Plain, x: np.ndarray, top_rate: float) -> np.ndarray:
    made = np.split(x @ np.array(layer.made.weight).T, np.cumsum(PARTS)[:-1], axis=-1)
    weight, memory = np.array(layer.conv1d.weight)[:, 0], np.zeros((HEADS, KEY, VALUE))
    out = np.zeros((len(x), HEADS, VALUE))
    for now in range(len(x)):
        seen = sum(weight[:, WIDTH - 1 - back] * made[0][now - back] for back in range(min(WIDTH, now + 1)))
        query, key, values = np.split(seen / (1 + np.exp(-seen)), [KEY, 2 * KEY])
        query, key = (each / np.sqrt(each @ each + 1e-6) for each in (query, key))
        for head, value in enumerate(values.reshape(HEADS, VALUE)):
            step = np.log1p(np.exp(made[3][now, head] + float(layer.dt_bias[head])))
            held = memory[head] * np.exp(-np.exp(float(layer.A_log[head])) * step)
            rate = top_rate / (1 + np.exp(-made[2][now, head]))
            memory[head] = held + np.outer(key, rate * (value - key @ held))
            out[now, head] = query @ memory[head] * KEY**-0.5
    return (out * made[1].reshape(out.shape)).reshape(len(x), -1)


@pytest.mark.parametrize("top_rate", [1.0, 2.0])
def test_values(top_rate: float) -> None:
    layer = Plain(top_rate)
    got = np.array(layer(mx.array(X), None, NoCache()))
    for row in range(2):
        np.testing.assert_allclose(got[row], token_by_token(layer, X[row], top_rate), atol=1e-5)


def test_parts_and_rows_that_are_filled_up() -> None:
    layer, state, parts = Plain(1.0), StateCache(), []
    state.padding = mx.array([0, 4])
    for start, stop in ((0, 6), (6, 7), (7, LENGTH)):
        parts.append(layer(mx.array(X[:, start:stop]), None, state))
    got = np.array(mx.concatenate(parts, axis=1))
    np.testing.assert_allclose(got[0], token_by_token(layer, X[0], 1.0), atol=1e-5)
    np.testing.assert_allclose(got[1, 4:], token_by_token(layer, X[1, 4:], 1.0), atol=1e-5)
    assert state.offset == LENGTH


def test_the_norm_is_gated_after_its_weight() -> None:
    norm = GatedNorm(3, 1e-6)
    norm.weight = mx.array([1.0, 2.0, 3.0])
    x, gate = np.array([[3.0, -1.0, 2.0]]), np.array([[0.5, -1.0, 2.0]])
    wanted = x / np.sqrt(np.mean(x**2) + 1e-6) * np.array([1.0, 2.0, 3.0]) * gate / (1 + np.exp(-gate))
    np.testing.assert_allclose(np.array(norm(mx.array(x), mx.array(gate))), wanted, atol=1e-6)
    assert norm(mx.array(x).astype(mx.bfloat16), mx.array(gate)).dtype == mx.bfloat16


class Pair(Plain):
    """The same with two matrices."""

    def __init__(self) -> None:
        DeltaNet.__init__(
            self,
            DeltaShape(HIDDEN, KEY_HEADS, HEADS, KEY, VALUE, WIDTH),
            silu,
            {"first": PARTS[0], "rest": sum(PARTS[1:])},
        )

    def project(self, x: mx.array) -> Projected:
        first, rest = self.projected(x)
        return Projected(first, *mx.split(rest, np.cumsum(PARTS[1:])[:-1].tolist(), axis=-1))


def test_fused_projections_are_the_same_until_one_is_replaced() -> None:
    layer = Pair()
    plain = np.array(layer(mx.array(X), None, NoCache()))
    assert layer.fuse()
    np.testing.assert_allclose(np.array(layer(mx.array(X), None, NoCache())), plain, atol=1e-6)
    layer.rest.weight = mx.zeros(layer.rest.weight.shape)
    assert not np.array(layer(mx.array(X), None, NoCache())).any()
