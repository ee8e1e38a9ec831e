"""Between a plan and a module: what parameters a module has, and putting arrays into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from weightloom.engine.carrier import spec_of
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn


def parameters(module: nn.Module) -> dict[str, mx.array]:
    """Give a module's parameters by dotted name; computes nothing."""
    from mlx.utils import tree_flatten

    return dict(cast("list[tuple[str, mx.array]]", tree_flatten(module.parameters())))


def param_specs(module: nn.Module) -> dict[str, TensorSpec]:
    """Give the spec of each of a module's parameters by dotted name."""
    return {name: spec_of(array) for name, array in parameters(module).items()}


def bind(module: nn.Module, arrays: Mapping[str, mx.array]) -> None:
    """Put arrays into a module, every parameter once; raises PlanError for a lacking or unknown name or shape."""
    check_fits(param_specs(module), {name: tuple(array.shape) for name, array in arrays.items()})
    module.load_weights(list(arrays.items()), strict=True)


def check_fits(specs: Mapping[str, TensorSpec], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Hold arrays' names and shapes against a module's parameters; raises PlanError as `bind` does."""
    lacking, unknown = sorted(set(specs) - set(shapes)), sorted(set(shapes) - set(specs))
    if lacking or unknown:
        name = (lacking or unknown)[0]
        raise PlanError(
            f"{len(lacking)} parameters lack an array and {len(unknown)} arrays a parameter, {name} first",
            expected="one array for each parameter of the module",
            tensor=name,
        )
    for name, shape in shapes.items():
        if shape != specs[name].shape:
            raise PlanError(f"{name} is {list(shape)}", expected=str(specs[name]), tensor=name)
