"""Layers that are dropped by number, which the config says."""

from __future__ import annotations

from typing import Any

import pytest

from weightloom.engine import Checkpoint, Drop, DropLayers, RuleError, TensorSpec, build_plan

RULE = DropLayers(r"^model\.layers", "num_hidden_layers", "num_nextn_predict_layers", why="not used")


def dropped(numbers: list[int], config: dict[str, Any]) -> list[str]:
    names = [f"model.layers.{number}.w" for number in numbers]
    ckpt = Checkpoint.from_specs(dict.fromkeys(names, TensorSpec("F32", (1,))))
    return [record.name for record in build_plan(ckpt, [RULE], config=config).report.dropped]


def test_numbers_from_the_first_on_are_dropped_and_no_others() -> None:
    config = {"num_hidden_layers": 61, "num_nextn_predict_layers": 2}
    assert dropped([6, 60, 61, 62, 63, 610], config) == ["model.layers.61.w", "model.layers.62.w"]
    assert dropped([0, 1, 2], {"num_hidden_layers": 2, "num_nextn_predict_layers": 1}) == ["model.layers.2.w"]
    assert dropped([0, 1, 2], {"num_hidden_layers": 2, "num_nextn_predict_layers": 0}) == []


def test_the_text_config_of_a_composite_model_counts() -> None:
    config = {"text_config": {"num_hidden_layers": 3, "num_nextn_predict_layers": 1}}
    assert dropped([2, 3], config) == ["model.layers.3.w"]


def test_what_it_is_bound_to_says_the_same_of_itself() -> None:
    bound = RULE.bound({"num_hidden_layers": 2, "num_nextn_predict_layers": 1})
    assert bound == Drop(r"^model\.layers\.(?:2)\.", why="not used")
    assert RULE.inverse() == RULE
    assert RULE.title() == r"drop ^model\.layers from num_hidden_layers on, num_nextn_predict_layers in all"


@pytest.mark.parametrize(
    ("config", "seen"),
    [
        ({}, "drop_layers needs 'num_hidden_layers', which the config gives as None"),
        ({"num_hidden_layers": "2"}, "which the config gives as '2'"),
        ({"num_hidden_layers": 2, "num_nextn_predict_layers": 10**9}, "1000000000 layers to drop"),
    ],
)
def test_a_config_that_does_not_say(config: dict[str, Any], seen: str) -> None:
    with pytest.raises(RuleError, match=seen) as caught:
        dropped([0], config)
    assert caught.value.rule == RULE.title()


def test_parts_of_layers() -> None:
    rule = DropLayers("layers", "depth - 1", 1, r"self_attn\.[kv]_proj\.")
    names = [f"layers.{number}.self_attn.{part}_proj.weight" for number in (0, 1) for part in "qkv"]
    ckpt = Checkpoint.from_specs(dict.fromkeys(names, TensorSpec("F32", (1,))))
    plan = build_plan(ckpt, [rule], config={"depth": 2})
    assert [record.name for record in plan.report.dropped] == names[-2:]
    assert rule.title() == r"drop self_attn\.[kv]_proj\. of layers from depth - 1 on, 1 in all"


@pytest.mark.parametrize("arguments", [(3, 1, 1), ("(", 1, 1), ("a", "b +", 1), ("a", True, 1), ("a", 1, 1, "(")])
def test_what_makes_no_rule(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(RuleError):
        DropLayers(*arguments)
