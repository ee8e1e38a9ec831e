"""Which rules of a plan have no exact way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weightloom.engine.errors import NotInvertible
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.report import Lossy


def lossy_records(groups: Iterable[Group]) -> Iterator[Lossy]:
    """Give a record for each rule that says it is lossy, or has an op without an inverse, with its parameters."""
    found: dict[tuple[str, str], list[str]] = {}
    known: dict[int, str | None] = {}
    for group in groups:
        if group.rule is None and not group.program.moves:
            continue
        reason = _declared(group)
        if reason is None:
            if id(group.program) not in known:
                known[id(group.program)] = _no_inverse(group)
            reason = known[id(group.program)]
        if reason is not None:
            title = group.rule.title() if group.rule else "a value step"
            found.setdefault((title, reason), []).extend(group.targets)
    for (title, reason), parameters in sorted(found.items()):
        yield Lossy(title, reason, tuple(sorted(parameters)))


def _declared(group: Group) -> str | None:
    if group.rule is not None and group.rule.fidelity == "lossy":
        return group.rule.why or "the rule says that it is lossy"
    return None


def _no_inverse(group: Group) -> str | None:
    try:
        group.inverse()
    except NotInvertible as error:
        return error.seen
    return None
