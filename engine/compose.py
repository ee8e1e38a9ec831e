"""Two plans, one after the other, as one: what the first makes, the second takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from weightloom.engine.errors import PlanError
from weightloom.engine.groups import Group
from weightloom.engine.joining import joined
from weightloom.engine.plan import Kept, Plan


def compose(first: Plan, second: Plan) -> Plan:
    """Give the plan from the first one's sources to the second one's targets.

    Groups that meet are joined into one, so that the whole stays invertible. Raises PlanError where the second
    needs a tensor that the first does not make, leaves one over, or wants it in another shape.
    """
    makers = {target: group for group in first.groups for target in group.targets}
    tied = {record.parameter: record.other for record in first.report.tied}
    _check_meeting(makers, tied, second)
    groups = tuple(joined(a, b) for a, b in _components(first.groups, second.groups, makers))
    return Plan(
        sources=first.sources,
        params=second.params,
        groups=tuple(sorted(groups, key=lambda group: group.targets)),
        kept=(*first.kept, *(Kept(name, "tied copy") for group in first.copies for name in group.sources)),
        report=replace(first.report, lossy=(*first.report.lossy, *second.report.lossy)),
        inverted=first.inverted,
        checkpoint=first.checkpoint,
        before=first.before or first,
    )


def _check_meeting(makers: Mapping[str, Group], tied: Mapping[str, str], second: Plan) -> None:
    taken = {source for group in second.groups for source in group.sources}
    lacking = sorted(taken - set(makers) - set(tied))
    unused = sorted(set(makers) - taken)
    if lacking or unused:
        name = (lacking or unused)[0]
        raise PlanError(
            f"the plans do not meet: {name} is {'not made by the first' if lacking else 'not taken by the second'}",
            expected="a second plan whose sources are exactly the first one's parameters",
            tensor=name,
        )


def _components(
    firsts: tuple[Group, ...], seconds: tuple[Group, ...], makers: Mapping[str, Group]
) -> Iterator[tuple[list[Group], list[Group]]]:
    """Give the groups of both plans that hang together through the tensors between them."""
    takers = {source: group for group in seconds for source in group.sources}
    seen: set[int] = set()
    for group in firsts:
        if id(group) in seen:
            continue
        left, right, todo = [], [], [("left", group)]
        while todo:
            side, here = todo.pop()
            if id(here) in seen:
                continue
            seen.add(id(here))
            if side == "left":
                left.append(here)
                todo += [("right", takers[name]) for name in here.targets if name in takers]
            else:
                right.append(here)
                todo += [("left", makers[name]) for name in here.sources if name in makers]
        yield left, right
