"""A plan in which packed parameters go through a step of their own: words, scales and biases together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Kept, Plan
from weightloom.engine.planning.groups import Group, unchanged
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.quantizing.changing import Changing
from weightloom.engine.quantizing.quantization import part_names
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program


def repacked(plan: Plan, steps: Mapping[str, Changing], why: str) -> Plan:
    """Give the plan in which these packed parameters go through steps, slots counted from their words.

    It has no way back, and its report says so with `why`. Raises PlanError for what is not packed as a step says, and
    for a name that shares the tensor of another.
    """
    if not steps:
        return plan
    _refuse_shared(plan, steps)
    made = tuple(_group(name, step, plan) for name, step in steps.items())
    taken = {source for group in made for source in group.sources}
    touched = [group for group in plan.groups if taken.intersection(group.targets)]
    changed = [_marked(group, why) for group in _joined(touched, made, taken)]
    others = (group for group in plan.groups if not taken.intersection(group.targets))
    groups = tuple(sorted((*changed, *others), key=lambda group: group.targets))
    found = _with_params(plan, {name: spec for group in made for name, spec in group.made}, taken)
    report = replace(found.report, lossy=tuple(lossy_records(groups)))
    return replace(found, groups=groups, report=report, before=plan.before or plan)


def _refuse_shared(plan: Plan, names: Collection[str]) -> None:
    shared = {record.parameter: record.other for record in plan.report.tied if record.parameter in names}
    for name, other in sorted(shared.items()):
        raise PlanError(f"{name} shares the tensor of {other}", expected=f"a change of {other}", tensor=name)


def _group(name: str, step: Changing, plan: Plan) -> Group:
    parts = part_names(name)[: step.arity]
    lacking = next((part for part in parts if part not in plan.params), None)
    if lacking is not None:
        raise PlanError(f"{name} is packed and {lacking} is not there", expected=", ".join(parts), tensor=lacking)
    program = Program(tuple(plan.params[each].logical() for each in parts), (step,))
    return Group(None, parts, parts[: len(program.out_specs)], program)


def _joined(touched: Sequence[Group], made: Sequence[Group], taken: Collection[str]) -> Sequence[Group]:
    """Put the steps behind the groups that make their parts; what else these make goes through."""
    between = {name: spec.logical() for group in touched for name, spec in group.made}
    through = [Group(None, (name,), (name,), unchanged(spec)) for name, spec in between.items() if name not in taken]
    second = Plan(sources=between, params={}, groups=(*through, *made))
    return Plan(sources={}, params=between, groups=tuple(touched)).then(second).groups


def _with_params(plan: Plan, made: Mapping[str, TensorSpec], taken: Collection[str]) -> Plan:
    """Give the plan with the parameters' new specs; what shares a tensor that changes has its spec, or goes with it.

    A second copy of such a tensor is kept in the files that it is in, and nowhere else.
    """
    ends = {record.parameter: record.other for record in plan.report.tied}
    first = {name: ends.get(name, name) for name in plan.params}
    params = {
        name: made.get(first[name], spec)
        for name, spec in plan.params.items()
        if first[name] in made or first[name] not in taken
    }
    copies = tuple(group for group in plan.copies if not any(ends.get(name) in taken for name in group.targets))
    gone = (name for group in plan.copies if group not in copies for name in group.sources)
    tied = tuple(record for record in plan.report.tied if record.parameter in params)
    kept = tuple(sorted((*plan.kept, *(Kept(name, "tied copy") for name in gone)), key=lambda each: each.name))
    return replace(plan, params=params, copies=copies, kept=kept, report=replace(plan.report, tied=tied))


def _marked(group: Group, why: str) -> Group:
    """Let a group's rule say that it is lossy, whatever it keeps."""
    return group if group.rule is None else replace(group, rule=group.rule.replace(fidelity="lossy", why=why))
