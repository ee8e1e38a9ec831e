"""The mixers of Mamba and Mamba 2 against the papers' recurrences, a token at a time in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_map

from weightloom.engine.errors import ConfigError
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.mamba import MambaMixer, MambaShape, rank_of
from weightloom.plugins.layers.mamba2 import GateThenNorm, Mamba2Mixer, Mamba2Shape
from weightloom.plugins.layers.state import StateCache

HIDDEN, WIDTH, LENGTH, EPS = 5, 3, 9, 1e-5
Array = np.ndarray[Any, Any]
X = np.random.default_rng(1).standard_normal((LENGTH, HIDDEN)).astype(np.float32)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


def parts(x: Array, *sizes: int) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=-1)


def convolved(mixer: Any, x: Array) -> Array:
    weight = np.array(mixer.conv1d.weight)[:, 0]
    seen = np.concatenate([np.zeros((WIDTH - 1, x.shape[1])), x])
    summed = sum(weight[:, back] * seen[back : back + len(x)] for back in range(WIDTH))
    return silu(summed + np.array(mixer.conv1d.bias))


def mamba(mixer: MambaMixer) -> Array:
    channels, states, rank = 4, 3, 2
    inputs, gate = parts(X @ np.array(mixer.in_proj.weight).T, channels, channels)
    inputs = convolved(mixer, inputs)
    dt, b, c = parts(inputs @ np.array(mixer.x_proj.weight).T, rank, states, states)
    steps = softplus(dt @ np.array(mixer.dt_proj.weight).T + np.array(mixer.dt_proj.bias))
    rates, held, out = -np.exp(np.array(mixer.A_log)), np.zeros((channels, states)), []
    for now in range(LENGTH):
        held = np.exp(steps[now][:, None] * rates) * held + np.outer(steps[now] * inputs[now], b[now])
        out.append((held @ c[now] + np.array(mixer.D) * inputs[now]) * silu(gate[now]))
    return np.array(out) @ np.array(mixer.out_proj.weight).T


def mamba2(mixer: Mamba2Mixer) -> Array:
    heads, dims, states, groups = 4, 2, 3, 2
    channels, shared = heads * dims, groups * states
    gate, inputs, dt = parts(X @ np.array(mixer.in_proj.weight).T, channels, channels + 2 * shared, heads)
    inputs, b, c = parts(convolved(mixer, inputs), channels, shared, shared)
    steps = softplus(dt + np.array(mixer.dt_bias))
    rates, held, out = -np.exp(np.array(mixer.A_log)), np.zeros((heads, dims, states)), []
    for now in range(LENGTH):
        y = np.zeros((heads, dims))
        for head, x in enumerate(inputs[now].reshape(heads, dims)):
            group = head // (heads // groups)
            held[head] *= np.exp(steps[now, head] * rates[head])
            held[head] += np.outer(steps[now, head] * x, b[now].reshape(groups, states)[group])
            y[head] = held[head] @ c[now].reshape(groups, states)[group] + np.array(mixer.D)[head] * x
        gated = (y.flatten() * silu(gate[now])).reshape(groups, -1)
        out.append((gated / np.sqrt((gated**2).mean(axis=-1, keepdims=True) + EPS)).flatten())
    return (np.array(out) * np.array(mixer.norm.weight)) @ np.array(mixer.out_proj.weight).T


CASES: list[tuple[Callable[[], nn.Module], Callable[[Any], Array]]] = [
    (lambda: MambaMixer(MambaShape(HIDDEN, 4, 3, 2, WIDTH)), mamba),
    (lambda: Mamba2Mixer(Mamba2Shape(HIDDEN, 4, 2, 3, 2, WIDTH), GateThenNorm(8, 2, EPS)), mamba2),
]


@pytest.mark.parametrize(("make", "one_by_one"), CASES)
def test_values(make: Callable[[], Any], one_by_one: Callable[[Any], Array]) -> None:
    mixer = filled(make())
    np.testing.assert_allclose(np.array(mixer(mx.array(X)[None], None, NoCache()))[0], one_by_one(mixer), atol=1e-4)


@pytest.mark.parametrize(("make", "one_by_one"), CASES)
def test_parts_are_as_the_whole(make: Callable[[], Any], one_by_one: Callable[[Any], Array]) -> None:
    mixer = filled(make())
    state, got = mixer.make_cache(), []
    for start, stop in ((0, 1), (1, 5), (5, 6), (6, LENGTH)):
        got.append(mixer(mx.array(X)[None, start:stop], None, state))
    np.testing.assert_allclose(np.array(mx.concatenate(got, axis=1))[0], one_by_one(mixer), atol=1e-4)
    assert state.offset == LENGTH


@pytest.mark.parametrize(("make", "one_by_one"), CASES)
def test_what_fills_up_a_row_leaves_no_trace(make: Callable[[], Any], one_by_one: Callable[[Any], Array]) -> None:
    mixer, state = filled(make()), StateCache()
    state.padding = mx.array([4])
    filled_up = mx.concatenate([mx.full((1, 4, HIDDEN), 7.0), mx.array(X)[None]], axis=1)
    np.testing.assert_allclose(np.array(mixer(filled_up, None, state))[0, 4:], one_by_one(mixer), atol=1e-4)


def test_the_rank_may_follow_from_the_hidden_size() -> None:
    assert rank_of("auto", 33, "time_step_rank") == 3 and rank_of(5, 33, "time_step_rank") == 5
    for wrong in (0, "all"):
        with pytest.raises(ConfigError) as caught:
            rank_of(wrong, 33, "time_step_rank")
        assert caught.value.field == "time_step_rank"


def filled(mixer: nn.Module) -> nn.Module:
    mx.random.seed(4)
    mixer.update(tree_map(lambda array: mx.random.normal(array.shape) / 2, mixer.parameters()))
    return mixer
