"""Selective scans against the recurrence, token by token."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.plugins.layers.selective_scan import selective_scan

BATCH, CHANNELS, STATES = 2, 6, 5
Array = np.ndarray[Any, Any]


def inputs(length: int) -> dict[str, Array]:
    random = np.random.default_rng(length)
    return {
        "x": random.standard_normal((BATCH, length, CHANNELS)),
        "dt": random.uniform(0.01, 2, (BATCH, length, CHANNELS)),
        "a": -random.uniform(0.1, 8, (CHANNELS, STATES)),
        "b": random.standard_normal((BATCH, length, STATES)),
        "c": random.standard_normal((BATCH, length, STATES)),
    }


def token_by_token(x: Array, dt: Array, a: Array, b: Array, c: Array, state: Array) -> tuple[Array, Array]:
    y = np.zeros(x.shape)
    for row in range(x.shape[0]):
        for t in range(x.shape[1]):
            for channel in range(x.shape[2]):
                decay = np.exp(dt[row, t, channel] * a[channel])
                state[row, channel] *= decay
                state[row, channel] += dt[row, t, channel] * x[row, t, channel] * b[row, t]
                y[row, t, channel] = state[row, channel] @ c[row, t]
    return y, state


def arrays(values: dict[str, Array]) -> dict[str, mx.array]:
    return {name: mx.array(value.astype(np.float32)) for name, value in values.items()}


@pytest.mark.parametrize("length", [1, 2, 7, 64, 131])
@pytest.mark.parametrize("goes_on", [False, True])
def test_values(length: int, goes_on: bool) -> None:
    values = inputs(length)
    before = np.random.default_rng(1).standard_normal((BATCH, CHANNELS, STATES)) * goes_on
    y, state = selective_scan(**arrays(values), state=mx.array(before.astype(np.float32)) if goes_on else None)
    wanted, after = token_by_token(**values, state=before.copy())
    np.testing.assert_allclose(np.array(y), wanted, atol=2e-5)
    np.testing.assert_allclose(np.array(state), after, atol=2e-5)


def test_parts_are_as_the_whole() -> None:
    values = arrays(inputs(90))
    whole, last = selective_scan(**values)
    state, parts = None, []
    for start, stop in ((0, 1), (1, 80), (80, 90)):
        cut = {name: each if name == "a" else each[:, start:stop] for name, each in values.items()}
        y, state = selective_scan(**cut, state=state)
        parts.append(y)
    assert mx.allclose(mx.concatenate(parts, axis=1), whole, atol=1e-5)
    assert mx.allclose(state, last, atol=1e-5)


def test_sixteen_bits_are_counted_in_thirty_two() -> None:
    values = {name: each.astype(mx.bfloat16) for name, each in arrays(inputs(5)).items()}
    y, state = selective_scan(**{**values, "a": values["a"].astype(mx.float32)})
    assert (y.dtype, state.dtype) == (mx.float32, mx.float32)
