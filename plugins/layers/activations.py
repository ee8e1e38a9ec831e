"""Activations by the names that configs give them."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from math import pi, sqrt
from typing import cast

import mlx.core as mx

from weightloom.engine.errors import ConfigError

Activation = Callable[[mx.array], mx.array]


def silu(x: mx.array) -> mx.array:
    """x times its logistic function."""
    return x * mx.sigmoid(x)


def gelu(x: mx.array) -> mx.array:
    """x times the normal distribution's cumulative function, exact."""
    return x * (1 + mx.erf(x / sqrt(2))) / 2


def gelu_tanh(x: mx.array) -> mx.array:
    """`gelu` by its tanh approximation."""
    return x * (1 + mx.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))) / 2


def relu(x: mx.array) -> mx.array:
    """x where positive, else 0."""
    return mx.maximum(x, 0)


def relu_squared(x: mx.array) -> mx.array:
    """x squared where positive, else 0 (arXiv 2109.08668)."""
    return mx.square(relu(x))


def softplus(x: mx.array) -> mx.array:
    """log(1 + exp(x))."""
    return mx.logaddexp(x, 0.0)


def gated(act: Activation) -> Callable[[mx.array, mx.array], mx.array]:
    """Give act(gate) * up as one function of both; on a GPU, as one kernel."""

    def product(gate: mx.array, up: mx.array) -> mx.array:
        return act(gate) * up

    # On the CPU, compiling asks for a C++ compiler on the machine that runs the model.
    on_gpu = mx.default_device() == mx.Device(mx.gpu)
    return cast("Callable[[mx.array, mx.array], mx.array]", mx.compile(product, shapeless=True)) if on_gpu else product


ACTIVATIONS: dict[str, Activation] = {
    "silu": silu,
    "swish": silu,
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "relu2": relu_squared,
    "sqrelu": relu_squared,
}


def activation(name: str, field: str = "hidden_act") -> Activation:
    """Give the activation of a name; raises ConfigError, naming `field` and the known ones, for another."""
    if name in ACTIVATIONS:
        return ACTIVATIONS[name]
    near = get_close_matches(name, ACTIVATIONS, n=1)
    raise ConfigError(
        f"{field} is {name!r}",
        expected=f"one of {', '.join(ACTIVATIONS)}",
        hint=f"did you mean {near[0]!r}?" if near else None,
        field=field,
    )
