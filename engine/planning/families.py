"""Bundles, found for all names of one shape at once.

The shapes that may be sources of one group are a *family*: a converter claims them all, and around its span they have
the same text but for numbers. What tells the groups of a family apart are those numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, repeat

from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.shapes import Layout, rows
from weightloom.engine.planning.groups import MOST_DIGITS, Bundle, bundle
from weightloom.engine.planning.resolve import Alike, Claim, ClaimForm, Resolved

Key = tuple[str, ...]
Slots = dict[int, dict[int | None, str]]


def bundles(alike: Iterable[Alike], each: Iterable[Resolved], rules: Sequence[Rule]) -> Iterator[Bundle]:
    """Collect claimed names by what they share; of several claims on a name the first counts."""
    families: dict[tuple[object, ...], list[Alike]] = defaultdict(list)
    for one in alike:
        families[one.claims[0].family].append(one)
    claimed: dict[tuple[object, ...], list[tuple[str, Claim]]] = defaultdict(list)
    for resolved in each:
        claimed[ClaimForm.of(resolved.claims[0]).family].append((resolved.name, resolved.claims[0]))
    for family, members in families.items():
        groups = _grouped(members) if family not in claimed else None
        if groups is None:
            claimed[family] += [(name, one.at(name).claims[0]) for one in members for name in one.shape.names]
        else:
            yield from _bundled(members[0], groups, rules)
    for names in claimed.values():
        yield from bundle(names, rules)


def _grouped(members: Iterable[Alike]) -> dict[Key, Slots] | None:
    """Give the names of a family by group, source and number; None if that takes a closer look at each name."""
    found: dict[Key, Slots] = defaultdict(dict)
    for one in members:
        form = one.claims[0]
        for layout in one.shape.layouts:
            numbers = _numbers(form, layout)
            if numbers is None:
                return None
            named = zip(numbers, layout.names, strict=False)
            # Names of one group mostly stand together.
            for key, run in groupby(rows(form.texts, layout)):
                found[key].setdefault(form.claim.source, {}).update(islice(named, len(list(run))))
    count = sum(len(one.shape.names) for one in members)
    return found if count == sum(len(names) for slots in found.values() for names in slots.values()) else None


def _numbers(form: ClaimForm, layout: Layout) -> Iterable[int | None] | None:
    """Give the number of each name in its source's list; None if they are not plainly numbers."""
    if form.number is None:
        return repeat(None)
    if form.number.text != "%s":
        return None
    hole = form.number.holes[0]
    # Digits that are no stand-in may be of any script, and as long as they like.
    if isinstance(hole, str):
        return repeat(int(hole)) if hole.isascii() and len(hole) <= MOST_DIGITS else None
    return map(int, layout.column(hole))


def _bundled(one: Alike, groups: dict[Key, Slots], rules: Sequence[Rule]) -> Iterator[Bundle]:
    form = one.claims[0]
    rule = rules[form.claim.converter]
    assert isinstance(rule, WeightConverter)
    for key, slots in groups.items():
        yield Bundle(rule, form.at(key), slots, (), ())
