"""Norms against their formulas in NumPy, and the dtype that each gives."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from weightloom.plugins.layers.norms import (
    Norm,
    PerHeadLayerNorm,
    UnweightedNorm,
    layer_norm,
    narrowing_norm,
    rms_norm,
    zero_centred_norm,
)

SIZE, EPS = 6, 1e-2
Array = np.ndarray[Any, Any]
X = np.random.default_rng(1).standard_normal((2, 3, 4, SIZE)).astype(np.float32)
WEIGHT = np.linspace(-1, 2, SIZE, dtype=np.float32)
BIAS = np.linspace(3, 1, SIZE, dtype=np.float32)


def rms(x: Array) -> Array:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS)


def standard(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPS)


@pytest.mark.parametrize(
    ("norm", "wanted"),
    [
        (rms_norm(EPS), rms(X) * WEIGHT),
        (narrowing_norm(EPS), rms(X) * WEIGHT),
        (zero_centred_norm(EPS), rms(X) * (1 + WEIGHT)),
        (zero_centred_norm(EPS, 0.25), rms(X) * (0.25 + WEIGHT)),
        (layer_norm(EPS), standard(X) * WEIGHT + BIAS),
        (layer_norm(EPS, bias=False), standard(X) * WEIGHT),
    ],
)
def test_values(norm: Norm, wanted: Array) -> None:
    made = norm(SIZE)
    made.weight = mx.array(WEIGHT)
    if "bias" in made:
        made.bias = mx.array(BIAS)
    np.testing.assert_allclose(np.array(made(mx.array(X))), wanted, atol=1e-5)


def test_one_without_parameters() -> None:
    norm = UnweightedNorm(EPS)
    assert not norm.parameters()
    np.testing.assert_allclose(np.array(norm(mx.array(X))), rms(X), atol=1e-5)


def test_one_with_a_weight_a_head() -> None:
    norm = PerHeadLayerNorm(4, SIZE, EPS)
    norm.weight = mx.array(np.arange(4 * SIZE, dtype=np.float32).reshape(4, SIZE))
    np.testing.assert_allclose(np.array(norm(mx.array(X))), standard(X) * np.array(norm.weight), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "norm", [rms_norm(EPS), zero_centred_norm(EPS), layer_norm(EPS), lambda _: UnweightedNorm(EPS)]
)
def test_the_dtype_stays(norm: Norm) -> None:
    assert _in_bfloat16(norm)(mx.array(X).astype(mx.bfloat16)).dtype == mx.bfloat16


def test_a_narrowing_norm_gives_its_weights_dtype() -> None:
    assert _in_bfloat16(narrowing_norm(EPS))(mx.array(X)).dtype == mx.bfloat16


def test_a_small_weight_is_not_lost_beside_the_centre() -> None:
    norm = zero_centred_norm(EPS)(SIZE)
    # 1 + 2 ** -9 is 1 in bfloat16.
    norm.weight = mx.full((SIZE,), 2.0**-9, mx.bfloat16)
    got = norm(mx.array(X))
    np.testing.assert_allclose(np.array(got), rms(X) * (1 + 2.0**-9), rtol=1e-5)


def _in_bfloat16(norm: Norm) -> nn.Module:
    made = norm(SIZE)
    made.set_dtype(mx.bfloat16)
    return made
