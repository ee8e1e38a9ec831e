"""From a rule file's text to a plan, or to what is wrong with it and where. Nothing is read but the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weightloom.engine import Plan, RuleSet, build_plan
from weightloom.engine.errors import WeightloomError
from weightloom.engine.planning.verdict import problem
from weightloom.rules.document import Layout, RuleFile, RuleItem
from weightloom.rules.extending import layout_names, layout_parts, layout_rules
from weightloom.rules.linting.lint import lint_file
from weightloom.rules.lookup import DEFAULT_LAYOUT, registry
from weightloom.rules.parse import parse_rules
from weightloom.runtime.authoring.faults import Fault, faults_of, of_conditions, of_finding, of_planning, of_report
from weightloom.runtime.authoring.subject import Subject


@dataclass(frozen=True)
class Replanned:
    """A plan, or None with the faults that kept it from being made.

    `misfits` are the file's rules that the plan's report blames, `warnings` what the linter finds; `error` is why the
    plan would not load.
    """

    layout: str | None = None
    plan: Plan | None = None
    faults: tuple[Fault, ...] = ()
    misfits: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    error: WeightloomError | None = None

    __hash__ = None  # type: ignore[assignment]  # a plan holds mappings


def replan(text: bytes, file: str, subject: Subject) -> Replanned:
    """Plan the subject by the rules in a text, and behind them those that the subject has; `file` is for messages.

    Of several layouts the subject's is taken, else the usual one, else the first. Raises nothing that a text can bring
    about: what is wrong is in `faults`, each with line and column.
    """
    try:
        read = parse_rules(text, file)
        layout = _layout(layout_names(read, registry.family), subject.layout)
        rules = layout_rules(read, layout, registry.family) if layout else RuleSet()
    except WeightloomError as error:
        return Replanned(faults=tuple(faults_of(error, file)))
    items, config = tuple(_own_items(read, layout)), subject.config
    unanswered = tuple(of_conditions(read, items, config))
    if unanswered:
        return Replanned(layout, faults=unanswered)
    warnings = tuple(map(of_finding, lint_file(read)))
    try:
        plan = plan_by(rules, subject)
    except WeightloomError as error:
        return Replanned(layout, faults=tuple(of_planning(error, file, items)), warnings=warnings)
    misfits = tuple(of_report(plan.report, read, items, config))
    return Replanned(layout, plan, misfits=misfits, warnings=warnings, error=problem(plan, strict=True))


def plan_by(rules: RuleSet, subject: Subject) -> Plan:
    """Plan the subject by rules, and behind them those that it has; raises RuleError as `build_plan` does."""
    all_rules, checkpoint, config = subject.rules(rules), subject.checkpoint, subject.config
    if subject.packed is not None:
        return subject.packed.plan(all_rules)
    if subject.parameters is None:
        return build_plan(checkpoint, all_rules, config=config)
    params = subject.parameters.specs(lambda: build_plan(checkpoint, all_rules, config=config).params.keys())
    return build_plan(checkpoint, all_rules, params, config=config)


def _layout(known: tuple[str, ...], wanted: str) -> str | None:
    return next((name for name in (wanted, DEFAULT_LAYOUT, *known) if name in known), None)


def _own_items(read: RuleFile, layout: str | None) -> Iterator[RuleItem]:
    """Give the rules that act and are written in this file; those that it extends have places in others."""
    parts: tuple[Layout, ...] = layout_parts(read, layout, registry.family) if layout else ()
    yield from (item for part in parts if part in read.layouts for item in part.items)
