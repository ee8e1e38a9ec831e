"""Every rule of every shipped file acts on some name: a rule that never does says nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.laws.shipped import CONFIG, SHIPPED
from tests.oracle.all_keys.pattern_names import names_for
from weightloom.engine import (
    Absent,
    Checkpoint,
    Drop,
    DropLayers,
    KeepDtype,
    PrefixChange,
    Rule,
    RuleSet,
    TensorSpec,
    Tie,
    build_plan,
)
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.planning.resolve import resolve
from weightloom.rules import load_rules


@pytest.mark.parametrize(("family", "layout"), SHIPPED)
def test_every_rule_of_a_file_acts_on_some_name(family: str, layout: str) -> None:
    rules = load_rules(family, layout)
    names = sorted({name for rule in rules for name in names_of(rule)})
    acting = {rule for together in conditions(rules) for rule in those_that_act(names, together)}
    idle = [rule.title() for rule in rules if rule not in acting and not acts_on_parameters(rule)]
    assert idle == []


def names_of(rule: Rule) -> Iterator[str]:
    """Names that a rule is for, among others; of a prefix both forms."""
    if isinstance(rule, PrefixChange):
        yield from (f"{start}x.weight" for start in forms(rule))
    elif isinstance(rule, DropLayers):
        parts = names_for(rule.parts) if rule.parts else ["w"]
        yield from (f"{name}.{n}.{part}" for name in names_for(rule.layers) for part in parts for n in range(10))
    elif isinstance(rule, Renaming | Drop):
        for source in rule.sources:
            yield from names_for(source.compiled.pattern)


def forms(rule: PrefixChange) -> tuple[str, str]:
    """How names begin with the prefix, and without it."""
    above = f"{rule.model_prefix}." if rule.model_prefix else ""
    return f"{above}{rule.prefix_to_add or rule.prefix_to_remove}.", above


def conditions(rules: RuleSet) -> Iterator[list[Rule]]:
    """For each condition the rules that hold then, for those of others may exclude them."""
    for when in {rule.when for rule in rules} | {None}:
        yield [rule for rule in rules if rule.when in (None, when)]


def those_that_act(names: list[str], rules: list[Rule]) -> Iterator[Rule]:
    """The rules that rename, claim or drop one of the names, all of them at once."""
    for each in resolve(names, tuple(rule.bound(CONFIG) for rule in rules))[1]:
        dropping = [] if each.drop is None else [each.drop]
        yield from (rules[number] for number in (*each.acted, *(claim.converter for claim in each.claims), *dropping))


def acts_on_parameters(rule: Rule) -> bool:
    """Rules about parameters pick some of them, or lead from one to another."""
    if isinstance(rule, Tie):
        return any(rule.other_end(name) not in (None, name) for name in names_for(rule.pattern.compiled.pattern))
    if isinstance(rule, KeepDtype | Absent):
        return all(any(map(source.search, names_for(source.compiled.pattern))) for source in rule.sources)
    return False


PREFIXES = [
    (family, layout, rule)
    for family, layout in SHIPPED
    for rule in load_rules(family, layout)
    if isinstance(rule, PrefixChange)
]


@pytest.mark.parametrize(("family", "layout", "rule"), PREFIXES, ids=lambda value: str(value) if value is str else None)
def test_both_published_forms_of_a_prefix_lead_to_one_name(family: str, layout: str, rule: PrefixChange) -> None:
    """Alone: what else a file's rules do to the two is theirs to say."""
    spec = TensorSpec("F32", (1,))
    made = set()
    names = [f"{start}x.weight" for start in forms(rule)]
    for name in names:
        plan = build_plan(Checkpoint.from_specs({name: spec}), [rule.replace(when=None)])
        plan.check()
        assert plan.inverse().params.keys() == {name}
        made |= plan.params.keys()
    with_prefix, without = names
    assert made == ({with_prefix} if rule.prefix_to_add else {without})


def test_there_are_prefixes_of_both_kinds() -> None:
    assert len(PREFIXES) > 20
    assert any(rule.prefix_to_add for _, _, rule in PREFIXES) and any(rule.prefix_to_remove for _, _, rule in PREFIXES)
