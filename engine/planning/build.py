"""build_plan: headers, rules and parameters to a plan. Reads no tensor data; never raises on a misfit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weightloom.engine.mapping.claims import Tie
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.plan import Plan
from weightloom.engine.planning.binder import Binder
from weightloom.engine.planning.draft import Draft
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.group_list import Groups
from weightloom.engine.planning.hints import hints
from weightloom.engine.planning.resolve import Resolution, by_likeness
from weightloom.engine.planning.ties import tie, tied_ends
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    from weightloom.engine.checkpoints.checkpoint import Checkpoint


def build_plan(
    ckpt: Checkpoint,
    rules: RuleSet | Sequence[Rule],
    params: Mapping[str, TensorSpec] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
) -> Plan:
    """Map a checkpoint to parameters by rules; `params` None takes whatever the rules give.

    What does not fit is in the plan's report. Raises RuleError when a rule itself cannot be carried out
    (a condition that the config does not answer, a pattern without end).
    """
    ruleset = rules if isinstance(rules, RuleSet) else RuleSet(rules)
    config = config or {}
    active = [rule.bound(config) for rule in ruleset if rule.applies(config, ckpt.metadata)]
    return plan_resolved(by_likeness(tuple(ckpt.tensors), active), ckpt, ruleset, params, config)


def plan_resolved(
    resolution: Resolution,
    ckpt: Checkpoint,
    ruleset: RuleSet,
    params: Mapping[str, TensorSpec] | None,
    config: Mapping[str, Any],
) -> Plan:
    """Put a plan together from what the rules that apply make of the names; it is the same however that was found."""
    ties = [rule for rule in resolution.resolver.rules if isinstance(rule, Tie)]
    asleep = [rule for rule in ruleset if isinstance(rule, Tie) and rule not in ties]
    fit = Fit(params, ruleset.base_model_prefix)
    draft = Draft(ckpt.logical, fit, resolution.resolver, ties, Binder(ckpt.logical, fit, config))
    draft.place_all(resolution)
    draft.settle_rivals()
    ends = tied_ends(draft.targets(), ties, fit)
    draft.take_apart(name for one, other, _ in ends for name in (one, other))
    groups, copies, tied, differing = tie(draft.groups, ends, fit)
    draft.mismatched += differing
    draft.compare_with_parameters([*groups, *copies])
    made = draft.made(groups)
    shared = {record.parameter: made[record.other] for record in tied if fit.is_parameter(record.parameter)}
    report = draft.report(tied, groups, ckpt.notes)
    return Plan(
        sources=ckpt.tensors,
        params={**made, **shared},
        groups=Groups(tuple(groups), draft.passed, ckpt.logical),
        copies=tuple(sorted(copies, key=lambda group: group.targets)),
        kept=tuple(sorted(draft.kept, key=lambda kept: kept.name)),
        report=report,
        checkpoint=ckpt,
        resolver=resolution.resolver,
        hints=hints(report, params, asleep, config, len(ckpt.tensors)),
    )
