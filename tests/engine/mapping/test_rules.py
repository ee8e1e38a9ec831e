"""Rule classes: what each does to names, by hand; what each refuses; the way back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from tests.strategies import name_rules
from weightloom.engine import (
    Chunk,
    Drop,
    IndexMap,
    NotInvertible,
    PrefixChange,
    RenameGroup,
    Rule,
    RuleError,
    RuleSet,
    Scope,
    Tie,
    WeightConverter,
    WeightRenaming,
)
from weightloom.engine.ops import Concatenate, MergeModulelist, Transpose


@given(name_rules())
def test_the_inverse_of_the_inverse_is_the_rule(rule: Rule) -> None:
    try:
        back = rule.inverse()
    except NotInvertible as error:
        assert error.rule == rule.title()
        return
    assert back.inverse() == rule
    assert hash(back.inverse()) == hash(rule)


RENAMES = [
    (WeightRenaming("norm", "ln"), "a.norm1.norm.w", "a.norm1.ln.w"),
    (WeightRenaming(["gamma", "beta"], "x"), "a.beta.gamma", "a.x.gamma"),
    (WeightRenaming(["ab", "abc"], "x"), "abc", "x"),
    (WeightRenaming("a", "b"), "a.a.a", "b.a.a"),
    (WeightRenaming("weight", "w"), "weight_scale_inv", None),
    (WeightRenaming("^(?!head)", "model."), "a.b", "model.a.b"),
    (WeightRenaming("^(?!head)", "model."), "head.b", None),
    (WeightRenaming(r"a\.*.c", "x.*.z"), "a.b.b.c", "x.b.b.z"),
    (WeightRenaming(r"(\d+)\.(\d+)", r"\2.\1"), "a.1.22", "a.22.1"),
    (RenameGroup(["a", "b"], ["b", "c"]), "x.b", "x.c"),
    (IndexMap(r"l\.{2i+1}\.m", "l.{i}.n"), "l.7.m", "l.3.n"),
    (IndexMap(r"l\.{2i+1}\.m", "l.{i}.n"), "l.8.m", None),
    (IndexMap(r"l\.{i}", "l.{i-2}"), "l.1.m", None),
    (IndexMap(r"l\.{i}", "l.{i+1}"), "l." + "9" * 5000, None),
    (PrefixChange(prefix_to_add="m"), "a", "m.a"),
    (PrefixChange(prefix_to_add="m"), "m.a", None),
    (PrefixChange(prefix_to_remove="m"), "m.a", "a"),
    (PrefixChange(prefix_to_remove="m", model_prefix="x"), "x.m.a", "x.a"),
]


@pytest.mark.parametrize(("rule", "name", "after"), RENAMES)
def test_renames(rule: WeightRenaming, name: str, after: str | None) -> None:
    assert rule.rewrite(name) == after


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: WeightRenaming("a", ["b", "c"]), "a rename with 2 targets"),
    (lambda: WeightRenaming("a", r"\1"), r"uses \\1, which source 'a' does not capture"),
    (lambda: WeightRenaming("a", "b$"), "does not say which text to write"),
    (lambda: WeightRenaming("(a", "b"), "source pattern .* is not a regular expression"),
    (lambda: WeightRenaming("(?i)a", "b"), "cannot read"),
    (lambda: WeightRenaming("a", "*.b"), "more stars than source 'a'"),
    (lambda: WeightRenaming([], "b"), "source_patterns is"),
    (lambda: WeightRenaming(r"\2", "(a)"), r"\\2 has no group"),
    (lambda: WeightRenaming("(b)", "(a)"), "both have capturing groups"),
    (lambda: RenameGroup(["a", "b"], ["c"]), "a group of 2 sources and 1 targets"),
    (lambda: RenameGroup(["a", "b"], ["*.c", "d"]), "more stars"),
    (lambda: IndexMap(".".join(["{i}"] * 10), "{i}"), "more than 9 numbers"),
    (lambda: IndexMap("a.{i}", "b.{j}"), "index map"),
    (lambda: IndexMap(["a.{i}", "b.{i}"], "b.{i}"), "an index map of several names"),
    (lambda: PrefixChange(), "prefix_to_add is None and prefix_to_remove is None"),
    (lambda: PrefixChange("a", "b"), "prefix_to_add is 'a' and prefix_to_remove is 'b'"),
    (lambda: Tie("a", "b.*.c"), "more stars"),
    (lambda: Tie("a", None), "a tie needs two patterns"),  # type: ignore[arg-type]
    (lambda: WeightConverter("a", "b", []), "a converter with operations"),
    (lambda: WeightConverter(r"a\.*.b\.*.c", "d", [MergeModulelist()]), "collects 2 stars"),
    (lambda: WeightConverter("a", r"b\.*.c\.*.d", [Chunk()]), "has 2 stars to number"),
    (lambda: WeightConverter("a", "b", [Transpose()], optional=["x"]), "optional names"),
    (lambda: Drop("a", fidelity="maybe"), "fidelity 'maybe'"),
    (lambda: RuleSet(["a"]), "'a' is not a rule"),  # type: ignore[list-item]
    (lambda: WeightRenaming("a", "b").replace(colour=1), "has no field 'colour'"),
    (lambda: WeightRenaming("a", "b", when="import os"), "cannot read the expression"),
]


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_what_is_wrong_is_said_where_it_is_written(make: Callable[[], object], text: str) -> None:
    with pytest.raises(RuleError, match=text):
        make()


def test_a_pattern_without_end_is_stopped() -> None:
    rule = WeightRenaming(r"^(a|a)+$", "b")
    assert rule.rewrite("aaa") == "b"


def test_rules_are_values() -> None:
    assert WeightRenaming("a", "b") == WeightRenaming(["a"], ["b"])
    assert hash(WeightConverter("a", "b", [Chunk(1)])) == hash(WeightConverter("a", "b", (Chunk(1),)))
    assert WeightRenaming("a", "b") != WeightRenaming("a", "b", scope=Scope("x"))
    with pytest.raises(AttributeError):
        WeightRenaming("a", "b").source_patterns = ("c",)  # type: ignore[misc]


def test_rule_sets_add_and_change_ops() -> None:
    rules = RuleSet([WeightConverter("a", "b", [Chunk(0)])], "model") + RuleSet([WeightRenaming("a", "b")])
    assert rules.base_model_prefix == "model" and len(rules) == 2
    changed = rules.map_ops(lambda op: Chunk(1)).prepend_op(Transpose()).append_op(Concatenate(2))
    assert isinstance(changed[0], WeightConverter)
    assert changed[0].operations == (Transpose(), Chunk(1), Concatenate(2))
    assert changed[1] == WeightRenaming("a", "b")


@pytest.mark.parametrize(
    ("scope", "name", "unprefixed", "split"),
    [
        (Scope("v"), "v.x", True, ("v.", "x")),
        (Scope("v"), "vx.x", True, None),
        (Scope("v", "m"), "m.v.x", True, ("m.v.", "x")),
        (Scope("v", "m"), "v.x", False, ("v.", "x")),
        (Scope("", "m"), "m.x", False, ("m.", "x")),
        (Scope("", "m"), "x", True, ("", "x")),
        (Scope("", "m"), "x", False, None),
    ],
)
def test_scopes(scope: Scope, name: str, unprefixed: bool, split: tuple[str, str] | None) -> None:
    assert scope.strip(name, unprefixed) == split
