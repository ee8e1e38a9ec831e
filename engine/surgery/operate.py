"""Put operations into a plan. All are checked first, against headers; a plan with all of them is given, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.surgery.leaving import without
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Change, Edit, Operation, Side
from weightloom.engine.views.program import Program, Step, widened

Steps = Mapping[str, Sequence[Step]]


@dataclass(frozen=True)
class Operated:
    """The plan with the operations in it, what each of them changes, and the config that goes with it."""

    plan: Plan
    changes: tuple[Change, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


def operate(plan: Plan, operations: Sequence[Operation], config: Mapping[str, Any] | None = None) -> Operated:
    """Give the plan with operations on files' names first, then those on parameters', each in order.

    Nothing is read but headers. Where a tensor changes, the plan has no way back, and its report says so. Raises
    PlanError, naming the operation and its place, for one that does not fit; ConfigError for a config that does not
    say what pruning must know.
    """
    in_files = [each for each in operations if each.side is Side.FILE]
    done = Operated(plan, (), config or {})
    if in_files:
        names = _files(plan)
        found = [(each, each.edits(names)) for each in in_files]
        steps = _by_name(edit for _, edits in found for edit in edits)
        groups = tuple(_edited(group, steps, {}) for group in plan.groups)
        done = replace(done, plan=_with(plan, groups), changes=tuple(_changes(found, names)))
    for each in operations:
        if each.side is Side.PARAMETER:
            done = _operated(done, each)
    return done


def _operated(done: Operated, operation: Operation) -> Operated:
    names = _parameters(done.plan, done.config)
    edits, renamed = operation.edits(names), operation.renamed(names)
    steps = _by_name(edits)
    plan = _with(done.plan, tuple(_edited(group, {}, steps) for group in done.plan.groups))
    gone = [Edit(name, None) for name, new in renamed.items() if new is None]
    changes = _changes([(operation, (*edits, *gone))], names)
    left = without(plan, renamed, operation.title)
    return Operated(left, (*done.changes, *changes), operation.changed(done.config))


def _with(plan: Plan, groups: tuple[Group, ...]) -> Plan:
    made = {name: spec for group in groups for name, spec in group.made}
    params = {name: made.get(name, spec) for name, spec in plan.params.items()}
    report = replace(plan.report, lossy=tuple(lossy_records(groups)))
    return replace(plan, groups=groups, params=params, report=report, before=plan.before or plan)


def _changes(found: Iterable[tuple[Operation, Sequence[Edit]]], names: Names) -> Iterable[Change]:
    for operation, edits in found:
        place = None if operation.place is None else str(operation.place)
        for edit in edits:
            spec = names.specs[edit.name]
            made = None if edit.step is None else edit.step.infer((spec,))[0]
            yield Change(edit.name, operation.op, place, spec, made, operation.side.value)


def _parameters(plan: Plan, config: Mapping[str, Any]) -> Names:
    specs = {name: spec for group in plan.groups for name, spec in group.made}
    return Names(specs, {record.parameter: record.other for record in plan.report.tied}, config)


def _files(plan: Plan) -> Names:
    """Give the files' names; of two copies of one tensor, the second is another name of the first."""
    specs = {name: spec for group in plan.groups for name, spec in group.taken}
    ends = {record.parameter: record.other for record in plan.report.tied}
    shared = {
        source: plan.by_target[ends[copy.targets[0]]].sources[0] for copy in plan.copies for source in copy.sources
    }
    return Names(specs, shared)


def _by_name(edits: Iterable[Edit]) -> Steps:
    found: dict[str, list[Step]] = {}
    for edit in edits:
        if edit.step is not None:
            found.setdefault(edit.name, []).append(edit.step)
    return found


def _edited(group: Group, before: Steps, after: Steps) -> Group:
    """Put steps at a group's sources and at its targets; the rule then says that it is lossy, whatever it keeps."""
    first, last = _placed(group.sources, before), _placed(group.targets, after)
    if not (first or last):
        return group
    program = Program(group.program.in_specs, (*first, *group.program.moves, *last))
    _ = program.out_specs  # checks every step
    rule = None if group.rule is None else group.rule.replace(fidelity="lossy", why="surgery changed its tensors")
    return replace(group, rule=rule, program=program)


def _placed(names: Sequence[str], steps: Steps) -> tuple[Step, ...]:
    return tuple(widened(step, slot, 0) for slot, name in enumerate(names) for step in steps.get(name, ()))
