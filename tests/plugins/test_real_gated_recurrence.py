"""RecurrentGemma's recurrence against its formulas (arXiv 2402.19427, section 2.4), token by token in NumPy."""

import mlx.core as mx
import numpy as np

from weightloom.plugins.architectures.recurrent_gemma import RealGatedRecurrence
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.state import StateCache

WIDTH, HEADS, LENGTH = 6, 2, 9
X = np.random.default_rng(2).standard_normal((2, LENGTH, WIDTH)).astype(np.float32)


def layer() -> RealGatedRecurrence:
    made, random = RealGatedRecurrence(WIDTH, HEADS), np.random.default_rng(3)
    made.update({name: mx.array(random.standard_normal(each.shape) * 0.5) for name, each in made.parameters().items()})
    return made


def gate(made: RealGatedRecurrence, name: str, x: np.ndarray) -> np.ndarray:
    weight, bias = np.array(made[f"{name}_weight"]), np.array(made[f"{name}_bias"])
    heads = [each @ weight[head] + bias[head] for head, each in enumerate(np.split(x, HEADS))]
    return 1 / (1 + np.exp(-np.concatenate(heads)))


def token_by_token(made: RealGatedRecurrence, x: np.ndarray) -> np.ndarray:
    rate, state, out = np.log1p(np.exp(np.array(made.recurrent_param))), np.zeros(WIDTH), np.zeros(x.shape)
    for now, each in enumerate(x):
        decay = np.exp(-8 * rate * gate(made, "recurrent_gate", each)) if now else np.zeros(WIDTH)
        state = out[now] = decay * state + np.sqrt(1 - decay**2) * gate(made, "input_gate", each) * each
    return out


def test_values() -> None:
    made = layer()
    got = np.array(made(mx.array(X), NoCache()))
    for row in range(2):
        np.testing.assert_allclose(got[row], token_by_token(made, X[row]), atol=1e-5)


def test_parts_and_rows_that_are_filled_up() -> None:
    made, state, parts = layer(), StateCache(), []
    state.padding = mx.array([0, 3])
    for start, stop in ((0, 5), (5, 6), (6, LENGTH)):
        parts.append(made(mx.array(X[:, start:stop]), state))
        state.put(stop - start)
    got = np.array(mx.concatenate(parts, axis=1))
    np.testing.assert_allclose(got[0], token_by_token(made, X[0]), atol=1e-5)
    np.testing.assert_allclose(got[1, 3:], token_by_token(made, X[1, 3:]), atol=1e-5)
