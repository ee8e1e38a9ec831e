"""State space duality against the recurrence, token by token."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.ssd import ssd

BATCH, HEADS, DIMS, STATES = 2, 4, 3, 5
Array = np.ndarray[Any, Any]


def inputs(length: int, groups: int) -> dict[str, Array]:
    random = np.random.default_rng(length)
    return {
        "x": random.standard_normal((BATCH, length, HEADS, DIMS)),
        "dt": random.uniform(0.01, 2, (BATCH, length, HEADS)),
        "a": -random.uniform(0.1, 8, HEADS),
        "b": random.standard_normal((BATCH, length, groups, STATES)),
        "c": random.standard_normal((BATCH, length, groups, STATES)),
    }


def token_by_token(x: Array, dt: Array, a: Array, b: Array, c: Array, state: Array) -> tuple[Array, Array]:
    y, shared = np.zeros(x.shape), HEADS // b.shape[2]
    for row in range(x.shape[0]):
        for t in range(x.shape[1]):
            for head in range(HEADS):
                state[row, head] *= np.exp(dt[row, t, head] * a[head])
                state[row, head] += dt[row, t, head] * np.outer(x[row, t, head], b[row, t, head // shared])
                y[row, t, head] = state[row, head] @ c[row, t, head // shared]
    return y, state


def arrays(values: dict[str, Array]) -> dict[str, mx.array]:
    return {name: mx.array(value.astype(np.float32)) for name, value in values.items()}


@pytest.mark.parametrize("length", [1, 2, 7, 128, 259])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("goes_on", [False, True])
def test_values(length: int, groups: int, goes_on: bool) -> None:
    values = inputs(length, groups)
    before = np.random.default_rng(1).standard_normal((BATCH, HEADS, DIMS, STATES)) * goes_on
    y, state = ssd(**arrays(values), state=mx.array(before.astype(np.float32)) if goes_on else None)
    wanted, after = token_by_token(**values, state=before.copy())
    np.testing.assert_allclose(np.array(y), wanted, atol=2e-4)
    np.testing.assert_allclose(np.array(state), after, atol=2e-4)


def test_parts_are_as_the_whole() -> None:
    values = arrays(inputs(150, 2))
    whole, last = ssd(**values)
    state, parts = None, []
    for start, stop in ((0, 1), (1, 140), (140, 150)):
        cut = {name: each if name == "a" else each[:, start:stop] for name, each in values.items()}
        y, state = ssd(**cut, state=state)
        parts.append(y)
    assert mx.allclose(mx.concatenate(parts, axis=1), whole, atol=2e-4)
    assert mx.allclose(state, last, atol=2e-4)


def test_what_decays_at_once_leaves_no_infinity() -> None:
    values = arrays(inputs(40, 1))
    y, state = ssd(**{**values, "dt": values["dt"] * 1000})
    assert mx.isfinite(y).all() and mx.isfinite(state).all()
