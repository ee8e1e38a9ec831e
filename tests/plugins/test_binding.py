"""Between names and modules: what parameters there are, and every one bound once."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import pytest

from weightloom.engine import TensorSpec
from weightloom.engine.errors import PlanError
from weightloom.plugins.modules.binding import bind, param_specs, parameters


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = [nn.Linear(3, 2), nn.Linear(2, 2, bias=False)]
        self.norm = nn.RMSNorm(2)


def test_parameters_have_dotted_names_and_specs() -> None:
    expected = {"blocks.0.weight": (2, 3), "blocks.0.bias": (2,), "blocks.1.weight": (2, 2), "norm.weight": (2,)}
    assert param_specs(Tiny()) == {name: TensorSpec("F32", shape) for name, shape in expected.items()}


def arrays() -> dict[str, mx.array]:
    return {name: mx.full(spec.shape, number) for number, (name, spec) in enumerate(param_specs(Tiny()).items())}


def test_every_parameter_is_bound() -> None:
    module, given = Tiny(), arrays()
    bind(module, given)
    found = parameters(module)
    assert found.keys() == given.keys() and all(mx.array_equal(found[k], given[k]).item() for k in given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm.weight": None}, "1 parameters lack an array and 0 arrays a parameter, norm.weight first"),
        ({"norm.bias": mx.zeros(2)}, "0 parameters lack an array and 1 arrays a parameter, norm.bias first"),
        ({"blocks.1.weight": mx.zeros((2, 3))}, r"blocks\.1\.weight is \[2, 3\]"),
        ({"blocks.0.weight": mx.zeros((3, 2))}, r"blocks\.0\.weight is \[3, 2\]"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_bound(change: dict[str, mx.array | None], message: str) -> None:
    module = Tiny()
    before = parameters(module)
    given = {name: array for name, array in {**arrays(), **change}.items() if array is not None}
    with pytest.raises(PlanError, match=message) as raised:
        bind(module, given)
    assert raised.value.tensor == next(iter(change))
    assert all(mx.array_equal(before[name], array).item() for name, array in parameters(module).items())
