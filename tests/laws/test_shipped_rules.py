"""The laws on names and values over every rule set that ships; names are drawn from its own patterns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.shipped import CONFIG, SHIPPED
from tests.laws.test_law_2_partition import check_partition
from tests.strategies import ANY_NAMES, share
from weightloom.engine import Checkpoint, Drop, NotInvertible, Rule, RuleSet, TensorSpec, WeightConverter, build_plan
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.planning.resolve import resolve, resolve_each
from weightloom.rules import load_rules

LETTERS = st.characters(codec="ascii", categories=["L", "Nd"], include_characters="._")


def test_there_are_rules_that_ship() -> None:
    assert len(SHIPPED) > 10


def names_for(rules: RuleSet) -> st.SearchStrategy[list[str]]:
    """Names that the rules' patterns match, and some that none does."""
    sources = [source for rule in rules if isinstance(rule, Renaming | Drop) for source in rule.sources]
    found = [st.from_regex(re.compile(source.compiled.pattern), alphabet=LETTERS) for source in sources]
    matched = st.one_of(found) if found else st.nothing()
    layers = st.builds("layers.{}.{}".format, st.integers(0, 99), matched)
    names = st.one_of(matched, layers, ANY_NAMES).filter(lambda name: name != "__metadata__")
    return st.lists(names, min_size=1, max_size=8, unique=True)


def converts_back(rule: Rule) -> bool:
    try:
        return rule.inverse().inverse() == rule
    except NotInvertible as error:
        return error.rule is not None


@pytest.mark.parametrize(("family", "layout"), SHIPPED)
def test_the_laws_hold(family: str, layout: str) -> None:
    rules = load_rules(family, layout)
    assert all(converts_back(rule) for rule in rules)
    for rule in rules:
        for op in rule.operations if isinstance(rule, WeightConverter) else ():
            try:
                assert op.inverse().inverse() == op
            except NotInvertible as error:
                assert error.rule
    check_names(RuleSet([rule.bound(CONFIG) for rule in rules.replace_all(when=None)]))


def check_names(rules: RuleSet) -> None:
    spec = TensorSpec("F32", (8, 8))
    back = backwards(rules)

    @share(0.02)
    @given(names_for(rules), st.data())
    def law(names: list[str], data: st.DataObject) -> None:
        by_shape = resolve(names, rules)[1]
        assert by_shape == resolve_each(names, rules)[1]
        parameters = sorted({each.renamed for each in by_shape} | set(names))
        assert resolve(parameters, back)[1] == resolve_each(parameters, back)[1]
        plan = build_plan(Checkpoint.from_specs(dict.fromkeys(names, spec)), rules, config=CONFIG)
        check_partition(plan, set(names), None)
        shuffled = data.draw(st.permutations(names))
        again = build_plan(Checkpoint.from_specs(dict.fromkeys(shuffled, spec)), rules, config=CONFIG)
        assert (plan.groups, plan.copies, plan.kept, plan.report) == (
            again.groups, again.copies, again.kept, again.report,
        )  # fmt: skip
        if plan.invertible:
            assert plan.inverse().inverse() == plan

    law()


def backwards(rules: RuleSet) -> RuleSet:
    """The inverses, last first: what leads from parameters to published names."""
    return RuleSet([back for rule in reversed(rules) for back in inverses(rule)])


def inverses(rule: Rule) -> list[Rule]:
    try:
        return [rule.inverse()]
    except NotInvertible:
        return []


def test_stars_that_are_no_numbers_are_reported_alike_in_any_order() -> None:
    rules = load_rules("qwen2_moe")
    names = [f"mlp.experts..{part}_proj.weight" for part in ("gate", "up", "down")]
    spec = TensorSpec("F32", (8, 8))
    one, other = (build_plan(Checkpoint.from_specs(dict.fromkeys(each, spec)), rules) for each in (names, names[::-1]))
    assert one.report == other.report
    assert {record.name for record in one.report.ambiguous} == set(names)
