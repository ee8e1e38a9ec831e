"""Ties: two parameters that share one tensor, of which a checkpoint may hold one or both ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weightloom.engine.mapping.claims import Tie
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.report import Mismatch, Tied


def tie(
    groups: Sequence[Group], ends: Iterable[tuple[str, str, Tie]], fit: Fit
) -> tuple[list[Group], list[Group], list[Tied], list[Mismatch]]:
    """Give (groups, groups that hold a second copy, records, copies whose shapes differ) for the `ends` of ties.

    Whether a second copy holds the same bytes is a check that needs values; it is made before anything is
    bound.
    """
    owner = {target: group for group in groups for target in group.targets}
    copies: dict[str, Group] = {}
    records: list[Tied] = []
    differing: list[Mismatch] = []
    for name, other, rule in ends:
        if name in copies or any(record.parameter == name for record in records):
            continue
        if name in owner and other in owner and len(owner[name].targets) == 1:
            copies[name] = owner[name]
            records.append(Tied(name, other, True, rule.title()))
            differing += _difference(owner[name], name, owner[other], other, rule, fit)
        elif other in owner and name not in owner and fit.is_parameter(name):
            records.append(Tied(name, other, False, rule.title()))
        elif name in owner and other not in owner and fit.is_parameter(other):
            records.append(Tied(other, name, False, rule.title()))
    kept = [group for group in groups if group.targets[0] not in copies]
    return kept, list(copies.values()), records, differing


def second_ends(ties: Sequence[Tie], fit: Fit) -> set[str]:
    """Give the parameters that need not be written, for each shares the tensor of one that is."""
    found: set[str] = set()
    for name, other, _ in tied_ends(fit.params or (), ties, fit):
        if fit.is_parameter(other) and other not in found:
            found.add(name)
    return found


def tied_ends(names: Iterable[str], ties: Sequence[Tie], fit: Fit) -> list[tuple[str, str, Tie]]:
    """Give (name, the name it shares its tensor with, rule) for each name that a tie is about, by rule and name."""
    if not ties:
        return []
    known = tuple(names)
    found: list[tuple[str, str, Tie]] = []
    for rule in ties:
        required = rule.pattern.required
        for name in sorted({name for name in known if required in name}):
            other = rule.other_end(name)
            other = None if other is None else fit.name(other)
            if other is not None and other != name:
                found.append((name, other, rule))
    return found


def _difference(copy: Group, name: str, group: Group, other: str, rule: Tie, fit: Fit) -> list[Mismatch]:
    mine = copy.program.out_specs[0]
    its = group.program.out_specs[group.targets.index(other)]
    if mine == its:
        return []
    expected = f"{its}, as its other end {other} has"
    return [Mismatch(name, copy.sources, str(mine), expected, rule.title(), fit.differences(mine, its))]
