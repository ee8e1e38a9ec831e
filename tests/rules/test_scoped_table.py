"""The walk through composite models: whose rules each part has, in which scope, in which order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.rules.scoped_table import WALKS, Walk
from weightloom.engine import Drop, ModuleNode, RuleSet, scoped_rules
from weightloom.rules import Registry, registry


def parts(rules: RuleSet) -> list[tuple[str, str]]:
    """The rule file and the scope of each rule, once each, in order."""
    found = ((Path(rule.place.file).stem, str(rule.scope or "")) for rule in rules if rule.place)
    return list(dict.fromkeys(found))


def nodes_of(walk: Walk, native: bool = True) -> list[ModuleNode]:
    return [ModuleNode(*node, native=native) for node in walk.nodes]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.key)
def test_a_walk(walk: Walk) -> None:
    assert parts(scoped_rules(nodes_of(walk), registry, walk.base)) == [*walk.wanted, ("legacy", "")]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.key)
def test_classes_from_outside_inherit_nothing(walk: Walk) -> None:
    assert parts(scoped_rules(nodes_of(walk, native=False), registry, walk.base)) == [("legacy", "")]


def found_in(lookup: Registry, nodes: Iterable[ModuleNode], base: str = "model") -> list[tuple[str, str]]:
    """What was registered here, by its pattern, and in which scope."""
    drops = (rule for rule in scoped_rules(nodes, lookup, base) if isinstance(rule, Drop) and rule.place is None)
    return [(rule.source_patterns[0], str(rule.scope or "")) for rule in drops]


def test_a_class_from_outside_has_what_is_registered_for_it_and_its_parts_what_is_theirs() -> None:
    lookup = Registry()
    lookup.register("MyGemma", [Drop("mine")])
    nodes = [ModuleNode("", "MyGemma", "gemma3", native=False), *nodes_of(WALKS[0])[1:]]
    assert found_in(lookup, nodes) == [("mine", "")]
    assert parts(scoped_rules(nodes, lookup, "model"))[0] == ("llava_model", "model")


def test_the_class_comes_before_the_type_and_does_not_stand_for_it() -> None:
    """The root is found by its class, so the detector in it is still found by its type, and covers what it holds."""
    lookup = Registry()
    lookup.register("detr", [Drop("by type")], overwrite=True)
    lookup.register("DetrEncoder", [Drop("by class")])
    walk = next(walk for walk in WALKS if walk.key == "DetrForSegmentation")
    assert found_in(lookup, nodes_of(walk)) == [
        ("by type", "model.detr"),
        ("by class", "model.detr.model.encoder"),
    ]


def test_an_identifier_that_an_ancestor_used_is_skipped_and_a_sibling_s_is_not() -> None:
    lookup = Registry()
    lookup.register("tower", [Drop("tower")])
    lookup.register("Block", [Drop("block")])
    nodes = [
        ModuleNode("", "Whole", "whole"),
        ModuleNode("left", "Tower", "tower"),
        ModuleNode("left.inner", "Inner", "tower"),
        ModuleNode("left.inner.block", "Block", "tower"),
        ModuleNode("left.inner.block.block", "Block", "other"),
        ModuleNode("left2", "Tower", "tower"),
        ModuleNode("right", "Block", "tower"),
    ]
    assert found_in(lookup, nodes) == [
        ("tower", "model.left"),
        ("block", "model.left.inner.block"),
        ("tower", "model.left2"),
        ("block", "model.right"),
    ]


def test_a_child_of_the_class_of_an_ancestor_is_not_found_by_its_type_either() -> None:
    lookup = Registry()
    lookup.register("Block", [Drop("class")])
    lookup.register("other", [Drop("type")])
    nodes = [ModuleNode("", "Block", "whole"), ModuleNode("a", "Block", "other"), ModuleNode("b", "Else", "other")]
    assert found_in(lookup, nodes, "") == [("class", ""), ("type", "b")]
