"""xIELU against its formula with the standard library's functions."""

from math import exp, expm1, log1p

import mlx.core as mx
import pytest

from weightloom.plugins.architectures.apertus import Xielu


def softplus(x: float) -> float:
    return log1p(exp(x))


def formula(x: float, alpha_p: float, alpha_n: float, beta: float, eps: float) -> float:
    if x > 0:
        return softplus(alpha_p) * x * x + beta * x
    return (beta + softplus(alpha_n)) * (expm1(min(x, eps)) - x) + beta * x


@pytest.mark.parametrize(("alpha_p", "alpha_n", "beta"), [(0.0, 0.0, 0.5), (1.3, -0.7, 0.2), (-4.0, 2.0, 1.0)])
def test_values(alpha_p: float, alpha_n: float, beta: float) -> None:
    act = Xielu()
    act.alpha_p, act.alpha_n, act.beta = mx.array([alpha_p]), mx.array([alpha_n]), mx.array(beta)
    xs = [-9.0, -1.5, -1e-3, 0.0, 1e-3, 0.4, 3.0]
    wanted = [formula(x, alpha_p, alpha_n, beta, -1e-6) for x in xs]
    assert act(mx.array(xs)).tolist() == pytest.approx(wanted, rel=1e-4, abs=2e-6)


def test_the_dtype_stays() -> None:
    assert Xielu()(mx.array([1.0], dtype=mx.bfloat16)).dtype == mx.bfloat16
