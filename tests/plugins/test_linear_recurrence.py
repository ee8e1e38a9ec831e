"""Linear recurrences against the sum worked out token by token."""

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.linear_recurrence import linear_recurrence


def token_by_token(decay: np.ndarray, added: np.ndarray, state: np.ndarray) -> np.ndarray:
    out = np.zeros(added.shape)
    for now in range(added.shape[1]):
        state = out[:, now] = decay[:, now] * state + added[:, now]
    return out


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 150])
@pytest.mark.parametrize("begun", [False, True])
def test_values(length: int, begun: bool) -> None:
    random = np.random.default_rng(length)
    decay, added = random.random((2, length, 3, 4)), random.standard_normal((2, length, 3, 4))
    state = random.standard_normal((2, 3, 4)) * begun
    got, last = linear_recurrence(mx.array(decay), mx.array(added), mx.array(state) if begun else None)
    wanted = token_by_token(decay, added, state)
    np.testing.assert_allclose(np.array(got), wanted, atol=1e-5)
    np.testing.assert_allclose(np.array(last), wanted[:, -1], atol=1e-5)


def test_what_is_held_is_float32() -> None:
    given = mx.ones((1, 5, 2), mx.bfloat16)
    assert {each.dtype for each in linear_recurrence(given, given)} == {mx.float32}
