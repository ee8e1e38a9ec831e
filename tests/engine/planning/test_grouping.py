"""Lists as a few lines: numbers give way where lines differ, and a rule's place stays where all lines have it."""

from __future__ import annotations

from weightloom.engine.planning.grouping import grouped


def test_the_place_of_the_rule_that_all_lines_have_stays_as_it_is() -> None:
    rule = "[^model\\.0 -> net (/home/user7/rules2.yaml:16)]"
    assert list(grouped(f"layers.{n}.norm.weight {rule}" for n in range(3))) == [f"layers.*.norm.weight {rule} x3"]


def test_of_rules_that_differ_in_numbers_the_numbers_give_way() -> None:
    assert list(grouped(f"layers.{n}.w [a rule (r.yaml:{n})]" for n in range(2))) == [
        "layers.*.w [a rule (r.yaml:*)] x2"
    ]


def test_lines_without_a_rule_are_joined_by_their_numbers() -> None:
    assert list(grouped(["a.0.b is c.0", "a.1.b is c.1", "x"])) == ["a.*.b is c.* x2", "x"]
