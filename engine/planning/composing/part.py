"""Part of a plan: the groups that make some of its parameters, and nothing else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from weightloom.engine.planning.report import LoadReport

if TYPE_CHECKING:
    from weightloom.engine.plan import Plan


def part_of(plan: Plan, names: Collection[str]) -> Plan:
    """Give the plan that loads these parameters alone, and what is made in one group with them.

    The tensors of the others are not read; nothing can be saved through it but these.
    """
    groups = tuple(group for group in plan.groups if any(target in names for target in group.targets))
    copies = tuple(group for group in plan.copies if any(target in names for target in group.targets))
    made = {target for group in (*groups, *copies) for target in group.targets}
    used = {source for group in (*groups, *copies) for source in group.sources}
    tied = tuple(
        record for record in plan.report.tied if record.other in made and (not record.copy or record.parameter in made)
    )
    missing = tuple(name for name in plan.report.missing if name in names)
    report = LoadReport(missing=missing, tied=tied, repaired=plan.report.repaired, notes=plan.report.notes)
    held = made | {record.parameter for record in tied}
    return replace(
        plan,
        sources={name: spec for name, spec in plan.sources.items() if name in used},
        params={name: spec for name, spec in plan.params.items() if name in held},
        groups=groups,
        copies=copies,
        kept=(),
        report=report,
        before=None if plan.before is None else part_of(plan.before, names),
    )
