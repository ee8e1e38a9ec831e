"""Activations against the standard library's functions."""

from collections.abc import Callable
from math import erf, exp, log1p, pi, sqrt, tanh

import mlx.core as mx
import pytest

from weightloom.engine.errors import ConfigError
from weightloom.plugins.layers.activations import activation, gated, silu, softplus

TANH: Callable[[float], float] = lambda x: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))  # noqa: E731
WANTED: dict[str, Callable[[float], float]] = {
    "silu": lambda x: x / (1 + exp(-x)),
    "swish": lambda x: x / (1 + exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / sqrt(2))),
    "gelu_new": TANH,
    "gelu_pytorch_tanh": TANH,
    "relu": lambda x: max(x, 0.0),
    "relu2": lambda x: max(x, 0.0) ** 2,
    "sqrelu": lambda x: max(x, 0.0) ** 2,
}


@pytest.mark.parametrize("name", WANTED)
def test_values(name: str) -> None:
    xs = [-8.0, -1.5, -0.3, 0.0, 0.2, 1.0, 5.0]
    got = activation(name)(mx.array(xs)).tolist()
    assert got == pytest.approx([WANTED[name](x) for x in xs], abs=2e-6)


@pytest.mark.parametrize("name", WANTED)
def test_the_dtype_stays(name: str) -> None:
    assert activation(name)(mx.array([1.0], dtype=mx.bfloat16)).dtype == mx.bfloat16


def test_a_gate_of_something_else() -> None:
    assert gated(silu)(mx.array([2.0]), mx.array([3.0])).item() == pytest.approx(6 / (1 + exp(-2)), rel=1e-5)


def test_softplus() -> None:
    xs = [-30.0, -1.0, 0.0, 2.0, 200.0]
    assert softplus(mx.array(xs)).tolist() == pytest.approx([log1p(exp(-abs(x))) + max(x, 0) for x in xs], rel=1e-5)
    assert softplus(mx.array([1.0], mx.bfloat16)).dtype == mx.bfloat16


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="hidden_act is 'geluu'") as caught:
        activation("geluu")
    assert caught.value.field == "hidden_act"
    assert caught.value.hint == "did you mean 'gelu'?"
