"""build_plan: headers, rules and parameters to a plan. Reads no tensor data; never raises on a misfit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weightloom.engine.mapping.active import active_rules
from weightloom.engine.mapping.claims import Tie
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.plan import Plan
from weightloom.engine.planning.binder import Binder
from weightloom.engine.planning.draft import Draft
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.group_list import Groups
from weightloom.engine.planning.hinting.hints import hints
from weightloom.engine.planning.hinting.prefix import Matched, Trial
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
    active = active_rules(ruleset, config, ckpt.metadata)
    return plan_resolved(by_likeness(tuple(ckpt.tensors), active), ckpt, ruleset, params, config)


def plan_resolved(
    resolution: Resolution,
    ckpt: Checkpoint,
    ruleset: RuleSet,
    params: Mapping[str, TensorSpec] | None,
    config: Mapping[str, Any],
) -> Plan:
    """Put a plan together from what the rules that apply make of the names; it is the same however that was found."""
    plan = _unhinted(resolution, ckpt, ruleset, params, config)
    active = resolution.resolver.rules
    asleep = [rule for rule in ruleset if isinstance(rule, Tie) and rule not in active]

    def under(old: str, new: str) -> Matched | None:
        found = with_prefix(ckpt, old, new)
        if found is None:
            return None
        return _matched(_unhinted(by_likeness(tuple(found.tensors), active), found, ruleset, params, config))

    said = hints(plan.report, params, asleep, config, Trial(_matched(plan), under))
    return replace(plan, report=replace(plan.report, hints=said)) if said else plan


def with_prefix(ckpt: Checkpoint, old: str, new: str) -> Checkpoint | None:
    """Give the headers with a first part of names exchanged; None where two would have one name, or one none."""
    from weightloom.engine.checkpoints.checkpoint import Checkpoint

    renamed = {
        new + name.removeprefix(old) if name.startswith(old) else name: spec for name, spec in ckpt.logical.items()
    }
    clash = len(renamed) < len(ckpt.logical) or "" in renamed
    return None if clash else Checkpoint.from_specs(renamed, ckpt.metadata)


def _matched(plan: Plan) -> Matched:
    kept = {each.name for each in plan.kept}
    dropped = sum(each.reason == "dropped" for each in plan.kept)
    return Matched(len(plan.sources) - len(kept), len(plan.sources) - dropped)


def _unhinted(
    resolution: Resolution,
    ckpt: Checkpoint,
    ruleset: RuleSet,
    params: Mapping[str, TensorSpec] | None,
    config: Mapping[str, Any],
) -> Plan:
    ties = [rule for rule in resolution.resolver.rules if isinstance(rule, Tie)]
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
    return Plan(
        sources=ckpt.tensors,
        params={**made, **shared},
        groups=Groups(tuple(groups), draft.passed, ckpt.logical),
        copies=tuple(sorted(copies, key=lambda group: group.targets)),
        kept=tuple(sorted(draft.kept, key=lambda kept: kept.name)),
        report=draft.report(tied, groups, ckpt.notes),
        checkpoint=ckpt,
        resolver=resolution.resolver,
    )
