"""A plan without some of its parameters, and with other names for some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Kept, Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.planning.report import Dropped
from weightloom.engine.surgery.kept_blocks import KeptBlocks
from weightloom.engine.views.program import Program


def without(plan: Plan, renamed: Mapping[str, str | None], title: str) -> Plan:
    """Give the plan with parameters renamed, and without those whose new name is None.

    The tensors that these come from are dropped, and the plan has no way back. Raises PlanError for a group that
    would go in part.
    """
    if not renamed:
        return plan
    gone = [group for group in plan.groups if _goes(group, renamed)]
    names = sorted(name for group in gone for name in group.sources)
    left = {id(group) for group in gone}
    groups = tuple(_renamed(group, renamed) for group in plan.groups if id(group) not in left)
    params = {new: spec for name, spec in plan.params.items() if (new := renamed.get(name, name)) is not None}
    groups = _marked(groups, title)
    dropped = (*plan.report.dropped, *(Dropped(name, title, "left out by surgery") for name in names))
    report = replace(plan.report, dropped=dropped, lossy=tuple(lossy_records(groups)))
    kept = tuple(sorted((*plan.kept, *(Kept(name, "pruned") for name in names)), key=lambda each: each.name))
    return replace(plan, groups=groups, params=params, kept=kept, report=report, before=plan.before or plan)


def _marked(groups: tuple[Group, ...], title: str) -> tuple[Group, ...]:
    """Put a step without a way back, which changes nothing, into the smallest group: it stands for the whole plan."""
    smallest = min(groups, key=lambda group: (sum(spec.nbytes for _, spec in group.made), group.targets))
    program = Program(smallest.program.in_specs, (*smallest.program.moves, KeptBlocks(0, 0, 1, (0,), title)))
    rule = None if smallest.rule is None else smallest.rule.replace(fidelity="lossy", why="surgery left layers out")
    marked = replace(smallest, rule=rule, program=program)
    return tuple(marked if group is smallest else group for group in groups)


def _goes(group: Group, renamed: Mapping[str, str | None]) -> bool:
    going = [name in renamed and renamed[name] is None for name in group.targets]
    if any(going) and not all(going):
        raise PlanError(
            f"{group.targets[going.index(True)]} comes from the same tensors as what stays",
            expected="layers whose tensors go into no others",
            tensor=group.targets[going.index(True)],
        )
    return all(going) and bool(going)


def _renamed(group: Group, renamed: Mapping[str, str | None]) -> Group:
    return replace(group, targets=tuple(renamed.get(name, name) or name for name in group.targets))
