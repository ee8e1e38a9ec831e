"""What a load makes: tensors, each with what it is made of and the group that has the sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weightloom.engine.errors import PlanError
from weightloom.engine.groups import Group
from weightloom.engine.plan import Plan
from weightloom.engine.program import Program
from weightloom.engine.sharding import Sharding
from weightloom.engine.view import View


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tensor to make: its name, what it is made of, and the group that has the sources."""

    name: str
    view: View
    group: Group


def outputs(group: Group, sharding: Sharding | None) -> Iterator[Wanted]:
    """Give the targets of a structural group, or a rank's parts of them."""
    for name, view in zip(group.targets, group.program.views(), strict=False):
        yield Wanted(name, view if sharding is None else sharding.cut(name, view), group)


def cut_apart(plan: Plan, sharding: Sharding | None) -> Iterator[Wanted]:
    """Give the ends of ties that this rank holds another part of than of the tensor that they share."""
    if sharding is None or sharding.size == 1:
        return
    for record in plan.report.tied:
        if sharding.kind_of(record.parameter) == sharding.kind_of(record.other):
            continue
        group = plan.by_target[record.other]
        if record.parameter in plan.params and group.program.is_structural:
            view = group.program.views()[group.targets.index(record.other)]
            yield Wanted(record.parameter, sharding.cut(record.parameter, view), group)


def inputs(group: Group, sharding: Sharding | None) -> list[Wanted]:
    """What goes into the first value step of a group; PlanError where a rank wants a part of what it makes."""
    cut = [name for name in group.targets if sharding is not None and sharding.kind_of(name) != "replicate"]
    if cut and sharding is not None and sharding.size > 1:
        raise PlanError(
            f"{cut[0]} is computed from {len(group.sources)} tensors and cannot be read in part",
            expected="rules that only move elements, for a parameter that is cut among ranks",
            tensor=cut[0],
        )
    first = group.program.segments()[0]
    start = first if isinstance(first, Program) else Program(group.program.in_specs)
    return [Wanted(str(slot), view, group) for slot, view in enumerate(start.views())]
