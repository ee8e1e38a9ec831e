"""Nemotron-H: what each layer is, however the config says it, and how step sizes are limited."""

from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_map

from tests.families.state_space import FAMILIES
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.nemotron_h import NEMOTRON_H

FAMILY = next(family for family in FAMILIES if family.model_type == "nemotron_h")
KINDS = ("linear_attention", "moe", "full_attention", "mlp")


def read(**values: Any) -> Any:
    return NEMOTRON_H.read_config({**FAMILY.sizes, **values})


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"hybrid_override_pattern": "ME*-"},
        {"layers_block_type": list(KINDS)},
        {"layers_block_type": ["mamba", "moe", "attention", "mlp"], "hybrid_override_pattern": "M"},
    ],
)
def test_layers(values: dict[str, Any]) -> None:
    assert read(**values).kinds == KINDS


@pytest.mark.parametrize(
    "values", [{"hybrid_override_pattern": "MX"}, {"hybrid_override_pattern": ""}, {"layers_block_type": ["conv"]}]
)
def test_an_unknown_kind_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**values)
    assert caught.value.field == next(iter(values))


def test_the_limit_of_step_sizes_decides_and_the_least_one_of_training_does_not() -> None:
    tokens = mx.arange(1, 9)[None]

    def answers(**values: Any) -> mx.array:
        mx.random.seed(5)
        model = NEMOTRON_H.build(read(hybrid_override_pattern="MM", **values))
        model.update(tree_map(lambda each: mx.random.normal(each.shape), model.parameters()))
        return model(tokens)

    plain = answers()
    assert mx.array_equal(answers(time_step_min=2.0), plain)
    assert not mx.allclose(answers(time_step_limit=[2.0, 3.0]), plain)
