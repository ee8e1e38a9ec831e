"""Put operations into a plan. All are checked first, against headers; a plan with all of them is given, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weightloom.engine.errors import PlanError
from weightloom.engine.groups import Group
from weightloom.engine.lossy import lossy_records
from weightloom.engine.plan import Plan
from weightloom.engine.program import Program, Step, widened
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Change, Edit, Operation, Side


@dataclass(frozen=True)
class Operated:
    """The plan with the operations in it, and what each of them changes."""

    plan: Plan
    changes: tuple[Change, ...]


def operate(plan: Plan, operations: Sequence[Operation]) -> Operated:
    """Give the plan with operations on files' names first, then those on parameters', each in order.

    Nothing is read but headers. Where a tensor changes, the plan has no way back, and its report says so. Raises
    PlanError, naming the operation and its place, for one that does not fit.
    """
    edits: dict[Side, list[Edit]] = {side: [] for side in Side}
    changes: list[Change] = []
    names = {Side.PARAMETER: _parameters(plan), Side.FILE: _files(plan)}
    for operation in operations:
        here = names[operation.side]
        found = operation.edits(here)
        edits[operation.side] += found
        place = None if operation.place is None else str(operation.place)
        changes += (Change(e.name, operation.op, place, here.specs[e.name], operation.side.value) for e in found)
    if not changes:
        return Operated(plan, ())
    groups = tuple(_edited(group, _by_name(edits[Side.FILE]), _by_name(edits[Side.PARAMETER])) for group in plan.groups)
    report = replace(plan.report, lossy=tuple(lossy_records(groups)))
    return Operated(replace(plan, groups=groups, report=report, before=plan.before or plan), tuple(changes))


def _parameters(plan: Plan) -> Names:
    specs = {name: spec for group in plan.groups for name, spec in group.made}
    return Names(specs, {record.parameter: record.other for record in plan.report.tied})


def _files(plan: Plan) -> Names:
    """Give the files' names; of two copies of one tensor, the second is another name of the first."""
    specs = {name: spec for group in plan.groups for name, spec in group.taken}
    ends = {record.parameter: record.other for record in plan.report.tied}
    shared = {
        source: plan.by_target[ends[copy.targets[0]]].sources[0] for copy in plan.copies for source in copy.sources
    }
    return Names(specs, shared)


def _by_name(edits: Iterable[Edit]) -> Mapping[str, list[Step]]:
    found: dict[str, list[Step]] = {}
    for edit in edits:
        found.setdefault(edit.name, []).append(edit.step)
    return found


def _edited(group: Group, before: Mapping[str, list[Step]], after: Mapping[str, list[Step]]) -> Group:
    """Put steps at a group's sources and at its targets; the rule then says that it is lossy, whatever it keeps."""
    first, last = _placed(group.sources, before), _placed(group.targets, after)
    if not (first or last):
        return group
    program = Program(group.program.in_specs, (*first, *group.program.moves, *last))
    if program.out_specs != group.program.out_specs:
        raise PlanError("surgery changed the size of a tensor", expected="the same sizes", tensor=group.targets[0])
    rule = None if group.rule is None else group.rule.replace(fidelity="lossy", why="surgery changed its tensors")
    return replace(group, rule=rule, program=program)


def _placed(names: Sequence[str], steps: Mapping[str, list[Step]]) -> tuple[Step, ...]:
    return tuple(widened(step, slot, 0) for slot, name in enumerate(names) for step in steps.get(name, ()))
