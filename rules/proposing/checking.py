"""Checking: a proposal is planned, and only what comes out as it was meant is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weightloom.engine import Checkpoint, Plan, RuleSet, TensorSpec, WeightConverter, WeightRenaming, build_plan
from weightloom.engine.mapping.rule import Rule
from weightloom.rules.op_table import default_ops
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.proposal import ProposedRule
from weightloom.rules.reading import MAX_NESTED, MAX_TEXT


def ruleset(rules: Iterable[ProposedRule]) -> RuleSet:
    """Make the rules."""
    return RuleSet(map(_rule, rules))


def unfit(
    links: Sequence[Link],
    rules: Sequence[ProposedRule],
    tensors: Mapping[str, TensorSpec],
    parameters: Mapping[str, TensorSpec],
    config: Mapping[str, Any],
) -> list[Link]:
    """Give the links that the rules, planned, do not carry out, and those whose patterns no file may have."""
    plan = build_plan(Checkpoint.from_specs(tensors), ruleset(rules), parameters, config=config)
    unwritten = {id(link) for rule in rules if not _fits_a_file(rule) for link in rule.links}
    return [link for link in links if id(link) in unwritten or not _carried_out(link, plan)]


def _fits_a_file(rule: ProposedRule) -> bool:
    (found,) = rule.item.values()
    patterns = [found["from"]] if isinstance(found["from"], str) else found["from"]
    return all(len(each) <= MAX_TEXT and each.count("(") <= MAX_NESTED for each in patterns)


def _carried_out(link: Link, plan: Plan) -> bool:
    for index in link.targets[0].shapes:
        target = link.targets[0].name(index)
        group = plan.by_target.get(target)
        if group is None or {each.name(index) for each in link.targets} != set(group.targets):
            return False
    made = {plan.by_target[link.targets[0].name(index)].sources for index in link.targets[0].shapes}
    return {name for names in made for name in names} <= set(link.names)


def _rule(rule: ProposedRule) -> Rule:
    ((kind, found),) = rule.item.items()
    if kind == "rename":
        return WeightRenaming(found["from"], found["to"])
    ops = [default_ops.make(name, _frozen(arguments)) for op in found["ops"] for name, arguments in op.items()]
    return WeightConverter(found["from"], found["to"], ops)


def _frozen(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
