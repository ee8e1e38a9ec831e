"""Which names are resolved together, and which one by one."""

from __future__ import annotations

import pytest

from weightloom.engine import Checkpoint, IndexMap, Rule, TensorSpec, WeightRenaming, build_plan
from weightloom.engine.mapping.blindness import Spelt, spelt_numbers
from weightloom.engine.mapping.shapes import Shape, by_shape
from weightloom.engine.planning.resolve import by_likeness

LAYERS = [f"layers.{layer}.{part}.w1" for layer in range(12) for part in ("attn", "mlp")]
MTP = [f"mtp.{n}.w" for n in range(3)]


def apart(names: list[str], *rules: Rule) -> set[str]:
    """The names that are resolved one by one."""
    return {each.name for each in by_likeness(names, rules).each}


@pytest.mark.parametrize(
    "rule",
    [IndexMap(r"mtp\.{i+1}", "mtp.{i}"), WeightRenaming(r"mtp\.[02]\.w", "mtp.x"), WeightRenaming(r"mtp.2", "x")],
)
def test_a_rule_that_sees_numbers_sets_only_those_names_apart_that_it_may_match(rule: Rule) -> None:
    assert apart([*LAYERS, *MTP], rule) == set(MTP)
    assert apart([*LAYERS, *MTP], WeightRenaming("layers", "mtp"), rule) == {*LAYERS, *MTP}


def test_names_that_nothing_can_stand_for_are_set_apart() -> None:
    odd = ["a.12345678.w", "layers.é.w1", "a\n1.b", "layers.٣.w1"]
    assert apart([*LAYERS, *odd], WeightRenaming("w1", "v")) == set(odd)


def shapes(names: list[str], *rules: Rule) -> list[Shape]:
    return [one.shape for one in by_likeness(names, rules).alike]


def test_a_number_is_spelt_out_only_behind_its_text() -> None:
    assert len(shapes(LAYERS)) == 2
    assert len(shapes(LAYERS, WeightRenaming(r"mlp\.w1", "mlp.gate"))) == 2
    assert len(shapes(LAYERS, WeightRenaming(r"layers\.1\.", "first."))) == 4
    # What stands before a number may be renamed: then it is spelt out wherever it is.
    assert len(shapes(LAYERS, WeightRenaming("layers", "blocks"), WeightRenaming(r"blocks\.1\.", "first."))) == 4


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        (r"layers\.(?:61|62)\.", {("layers.", "61"), ("layers.", "62")}),
        (r"^(?:model\.)?layers\.(6)\.w2", {("layers.", "6"), (".w", "2")}),
        (r"^1\.", {("", "1")}),
        (r"a?bc1", {("bc", "1")}),
        (r"x(?:61|62)", None),
        (r"x(?:1|b)2", None),
        (r"x(?:1)+\.", None),
        (r"(?:1|a)x", None),
        (r"a|1b", None),
    ],
)
def test_numbers_that_a_pattern_spells_out(pattern: str, numbers: set[tuple[str, str]] | None) -> None:
    assert spelt_numbers(pattern) == (None if numbers is None else {Spelt(*each) for each in numbers})


def test_shapes_hold_each_name_once() -> None:
    names = [*LAYERS, "layers.007.mlp.w1", "plain"]
    found, alone = by_shape(names, lambda before: frozenset({"7", "007"}))
    assert sorted(name for shape in found for name in shape.names) == sorted(names) and not alone
    assert {shape.representative for shape in found if "00" in shape.names[0]} == {"layers.007.mlp.w90000109"}


def test_groups_are_one_for_each_tensor_in_the_order_of_targets() -> None:
    plan = build_plan(Checkpoint.from_specs({name: TensorSpec("F32", (2,)) for name in ["b", "a", "c"]}), [])
    assert len(plan.groups) == 3
    assert [group.targets for group in plan.groups] == [("a",), ("b",), ("c",)]
    assert plan.groups[1:] == tuple(plan.groups)[1:] and plan.groups[0].sources == ("a",)
    assert plan.groups == tuple(plan.groups) and tuple(plan.groups) == plan.groups and plan.groups != ()
    assert hash(plan.groups) == hash(tuple(plan.groups)) and repr(plan.groups) == repr(tuple(plan.groups))
