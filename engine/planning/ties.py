"""Ties: two parameters that share one tensor, of which a checkpoint may hold one or both ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine.mapping.claims import Tie
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.report import Mismatch, Tied


@dataclass(frozen=True, slots=True)
class Ends:
    """Names that share one tensor, the one that the others are tied to first, and the rule that ties each."""

    names: tuple[str, ...]
    rules: Mapping[str, Tie]


def tie(
    groups: Sequence[Group], ends: Iterable[tuple[str, str, Tie]], fit: Fit
) -> tuple[list[Group], list[Group], list[Tied], list[Mismatch]]:
    """Give (groups, groups that hold a second copy, records, copies whose shapes differ) for the `ends` of ties.

    Of the ends in the checkpoint, the first in order is what the others share. Whether a second copy holds the same
    bytes is a check that needs values; it is made before anything is bound.
    """
    owner = {target: group for group in groups for target in group.targets}
    copies: dict[str, Group] = {}
    records: list[Tied] = []
    differing: list[Mismatch] = []
    for found in sets_of(ends, lambda name: name in owner or fit.is_parameter(name)):
        first = next((name for name in found.names if name in owner), None)
        for name in found.names if first is not None else ():
            rule = found.rules[name]
            if name != first and name in owner and len(owner[name].targets) == 1:
                copies[name] = owner[name]
                records.append(Tied(name, str(first), True, rule.title()))
                differing += _difference(owner[name], name, owner[str(first)], str(first), rule, fit)
            elif name not in owner and fit.is_parameter(name):
                records.append(Tied(name, str(first), False, rule.title()))
    kept = [group for group in groups if group.targets[0] not in copies]
    return kept, list(copies.values()), records, differing


def second_ends(ties: Sequence[Tie], fit: Fit) -> set[str]:
    """Give the parameters that need not be written, for each shares the tensor of one that is."""
    found: set[str] = set()
    for each in sets_of(tied_ends(fit.params or (), ties, fit), fit.is_parameter):
        found.update([name for name in each.names if fit.is_parameter(name)][1:])
    return found


def sets_of(ends: Iterable[tuple[str, str, Tie]], is_there: Callable[[str], bool]) -> list[Ends]:
    """Join ends that are tied to the same, or one to another; those nearest to the end of all ties come first.

    Of several ties of one name, the first counts whose other end is there, or is tied itself.
    """
    listed = tuple(ends)
    names = {name for name, _, _ in listed}
    tied: dict[str, tuple[str, Tie]] = {}
    for name, other, rule in listed:
        if is_there(other) or other in names:
            tied.setdefault(name, (other, rule))
    members: dict[str, dict[str, int]] = defaultdict(dict)
    for name in tied:
        path = _path(name, tied)
        root = min(path) if path[-1] in tied else path[-1]
        members[root].update({each: depth for depth, each in enumerate(reversed(path))})
    return [_ends(found, tied) for found in members.values()]


def _ends(depths: Mapping[str, int], tied: Mapping[str, tuple[str, Tie]]) -> Ends:
    names = tuple(sorted(depths, key=lambda name: (depths[name], name)))
    rules = {name: tied[name][1] for name in names if name in tied}
    # The end of all ties is in none by its own name: what ties the first of the others ties it.
    return Ends(names, {names[0]: rules[names[1]], **rules})


def _path(name: str, tied: Mapping[str, tuple[str, Tie]]) -> list[str]:
    """Follow ties to their end, or round a circle once."""
    path = [name]
    while path[-1] in tied and tied[path[-1]][0] not in path:
        path.append(tied[path[-1]][0])
    return path


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
