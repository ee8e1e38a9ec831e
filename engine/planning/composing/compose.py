"""Two plans, one after the other, as one: what the first makes, the second takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Kept, Plan
from weightloom.engine.planning.composing.joining import joined
from weightloom.engine.planning.groups import Group


def compose(first: Plan, second: Plan) -> Plan:
    """Give the plan from the first one's sources to the second one's targets.

    Groups that meet are joined into one, so that the whole stays invertible. Raises PlanError where the second
    needs a tensor that the first does not make, leaves one over, or wants it in another shape.

    What the second has no room for (`report.absent`) is left over: sources that lead to nothing else are kept, and
    of a group that makes more it is a remainder.
    """
    makers = {target: group for group in first.groups for target in group.targets}
    tied = {record.parameter: record.other for record in first.report.tied}
    _check_meeting(makers, tied, second)
    meeting = list(_components(first.groups, second.groups, makers))
    groups = (joined(left, right) for left, right in meeting if right)
    absent = (Kept(name, "absent") for left, right in meeting if not right for group in left for name in group.sources)
    copies, kept = _copies(first.copies, tied, second)
    return Plan(
        sources=first.sources,
        params=second.params,
        groups=tuple(sorted(groups, key=lambda group: group.targets)),
        copies=copies,
        kept=tuple(sorted((*first.kept, *absent, *kept), key=lambda kept: kept.name)),
        report=replace(first.report, lossy=(*first.report.lossy, *second.report.lossy), absent=second.report.absent),
        inverted=first.inverted,
        checkpoint=first.checkpoint,
        before=first.before or first,
    )


def _copies(
    copies: tuple[Group, ...], tied: Mapping[str, str], second: Plan
) -> tuple[tuple[Group, ...], tuple[Kept, ...]]:
    """Lead each second copy to where its other end goes; one whose other end does not go alone is kept."""
    found: list[Group] = []
    kept: list[Kept] = []
    for copy in copies:
        other = tied[copy.targets[0]]
        taker = second.by_source.get(other)
        if taker is not None and taker.sources == (other,) and len(copy.program.out_specs) == 1:
            found.append(joined([replace(copy, targets=(other,))], [taker]))
        else:
            kept += [Kept(name, "tied copy") for name in copy.sources]
    return tuple(found), tuple(kept)


def _check_meeting(makers: Mapping[str, Group], tied: Mapping[str, str], second: Plan) -> None:
    taken = {source for group in second.groups for source in group.sources}
    lacking = sorted(taken - set(makers) - set(tied))
    unused = sorted(set(makers) - taken - {record.parameter for record in second.report.absent})
    if lacking or unused:
        name = (lacking or unused)[0]
        raise PlanError(
            f"the plans do not meet: {name} is {'not made by the first' if lacking else 'not taken by the second'}",
            expected="a second plan whose sources are exactly the first one's parameters",
            tensor=name,
        )


def _components(
    firsts: Sequence[Group], seconds: Sequence[Group], makers: Mapping[str, Group]
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
