"""What is put together in mixers of Mamba 2: norms with gates, and the limits of step sizes."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from weightloom.engine.errors import ConfigError
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.mamba2 import (
    Gate,
    GateThenNorm,
    Mamba2Mixer,
    Mamba2Shape,
    NormThenGate,
    limits_of,
)

SIZE, EPS = 12, 1e-5
Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(2)
X, GATE = (RANDOM.standard_normal((2, 3, SIZE)).astype(np.float32) for _ in range(2))
WEIGHT = RANDOM.standard_normal(SIZE).astype(np.float32)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def normed(x: Array, groups: int) -> Array:
    parts = np.split(x, groups, axis=-1)
    return np.concatenate([part / np.sqrt((part**2).mean(-1, keepdims=True) + EPS) for part in parts], -1) * WEIGHT


WANTED: dict[type, Callable[[int], Array]] = {
    GateThenNorm: lambda groups: normed(X * silu(GATE), groups),
    NormThenGate: lambda groups: normed(X, groups) * silu(GATE),
}


@pytest.mark.parametrize("kind", WANTED)
@pytest.mark.parametrize("groups", [1, 3])
def test_norms_with_gates(kind: type[GateThenNorm], groups: int) -> None:
    norm = kind(SIZE, groups, EPS)
    norm.weight = mx.array(WEIGHT)
    np.testing.assert_allclose(np.array(norm(mx.array(X), mx.array(GATE))), WANTED[kind](groups), atol=2e-5)


def test_a_gate_without_a_norm_has_no_parameters() -> None:
    assert not Gate().parameters()
    np.testing.assert_allclose(np.array(Gate()(mx.array(X), mx.array(GATE))), X * silu(GATE), atol=1e-5)


def test_limits_hold_at_each_token() -> None:
    # Of two mixers that differ in step sizes alone, one far below the limits and one at the least, answers are alike.
    mixers = [Mamba2Mixer(Mamba2Shape(SIZE, 2, 4, 3, 1, 2, limits=(0.3, 0.5)), Gate()) for _ in range(2)]
    mixers[1].update(mixers[0].parameters())
    for mixer, bias in zip(mixers, (-20.0, float(np.log(np.expm1(0.3)))), strict=True):
        mixer.conv1d.weight = mx.ones(mixer.conv1d.weight.shape)
        mixer.in_proj.weight[-2:] = 0
        mixer.dt_bias = mx.full((2,), bias)
    low, least = (mixer(mx.array(X), None, NoCache()) for mixer in mixers)
    assert mx.allclose(low, least, atol=1e-6)
    assert not mx.allclose(low, mx.zeros_like(low))


def test_limits_are_two_in_order() -> None:
    assert limits_of(None) == limits_of((0.0, float("inf")))
    for wrong in ((0.1,), (0.2, 0.1), (-1.0, 1.0)):
        with pytest.raises(ConfigError) as caught:
            limits_of(wrong)
        assert caught.value.field == "time_step_limit"
