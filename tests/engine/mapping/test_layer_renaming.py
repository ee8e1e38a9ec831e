"""Renames in the layers that the config says."""

from __future__ import annotations

from typing import Any

import pytest

from weightloom.engine import Checkpoint, LayerRenaming, RuleError, TensorSpec, build_plan, save_plan

EVERY_THIRD = LayerRenaming(r"\.layers\.(\d+)\.dense\.", r".layers.\1.out.", "(layer + 1) % every == 0")
CONFIG = {"num_hidden_layers": 12, "every": 3}


def specs(*names: str) -> dict[str, TensorSpec]:
    return dict.fromkeys(names, TensorSpec("F32", (1,)))


@pytest.mark.parametrize("config", [CONFIG, {"text_config": CONFIG}], ids=["plain", "composite"])
def test_the_layers_it_holds_for_and_no_others(config: dict[str, Any]) -> None:
    """Not layer 12, nor layer 1 for what begins with its digits, nor one that the model has not."""
    names = [f"m.layers.{n}.dense.w" for n in (0, 1, 2, 10, 11, 12, 14)]
    plan = build_plan(Checkpoint.from_specs(specs(*names)), [EVERY_THIRD], config=config)
    renamed = [group.targets[0] for group in plan.groups if group.sources != group.targets]
    assert sorted(renamed) == ["m.layers.11.out.w", "m.layers.2.out.w"]


def test_a_model_that_was_never_loaded_is_written_so() -> None:
    plan = save_plan([EVERY_THIRD], specs("m.layers.1.out.w", "m.layers.2.out.w"), CONFIG)
    assert sorted(plan.sources) == ["m.layers.1.out.w", "m.layers.2.dense.w"]


def test_of_no_layer_it_does_nothing() -> None:
    names = specs("m.layers.1.dense.w", "m.layers.2.dense.w")
    plan = build_plan(Checkpoint.from_specs(names), [EVERY_THIRD], config=CONFIG | {"every": 100})
    assert set(plan.params) == set(names)


def test_its_inverse_undoes_it() -> None:
    assert EVERY_THIRD.inverse().inverse() == EVERY_THIRD
    assert EVERY_THIRD.rewrite("m.layers.2.dense.w") == "m.layers.2.out.w"
    assert EVERY_THIRD.title().endswith("in layers with (layer + 1) % every == 0")


@pytest.mark.parametrize(
    ("config", "seen"),
    [({}, "rename needs 'num_hidden_layers'"), ({"num_hidden_layers": 10**9, "every": 3}, "1000000000 layers")],
)
def test_a_config_that_does_not_say(config: dict[str, Any], seen: str) -> None:
    with pytest.raises(RuleError, match=seen) as caught:
        build_plan(Checkpoint.from_specs(specs("m.layers.2.dense.w")), [EVERY_THIRD], config=config)
    assert caught.value.rule == EVERY_THIRD.title()


def test_a_pattern_without_a_number_makes_no_rule() -> None:
    with pytest.raises(RuleError, match="for the number of a layer"):
        LayerRenaming(r"\.dense\.", ".out.", "layer == 0")
