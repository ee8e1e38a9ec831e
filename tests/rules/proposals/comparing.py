"""Whether two plans make the same of a tensor, element by element."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from weightloom.engine.planning.groups import Group
from weightloom.engine.views.program import Program
from weightloom.engine.views.view import View
from weightloom.engine.views.windows import Window, windows

_SAMPLES = 60


def same_group(one: Group | None, other: Group | None) -> bool:
    """Say whether the groups take the same tensors and fill each target with the same elements of them."""
    if one is None or other is None:
        return one is other
    if set(one.sources) != set(other.sources) or set(one.targets) != set(other.targets):
        return False
    at = {name: place for place, name in enumerate(other.sources)}
    places = tuple(at[name] for name in one.sources)
    targets = tuple(other.targets.index(name) for name in one.targets)
    return _same_program(one.program, other.program, places, targets)


@cache
def _same_program(one: Program, other: Program, places: tuple[int, ...], targets: tuple[int, ...]) -> bool:
    if not (one.is_structural and other.is_structural):
        return one == other and places == tuple(range(len(places)))
    slots = dict(enumerate(places))
    views = zip(one.views(), (other.views()[target] for target in targets), strict=True)
    return all(_same_view(first, second, slots) for first, second in views)


def _same_view(one: View, other: View, slots: Mapping[int, int]) -> bool:
    if one.shape != other.shape:
        return False
    first, second = list(windows(one)), list(windows(other))
    if [replace(each, slot=slots[each.slot]) for each in first] == second:
        return True
    chance, size = random.Random(0), 1
    for length in one.shape:
        size *= length
    places = {0, size - 1, *(chance.randrange(size) for _ in range(_SAMPLES))}
    return all(_element(first, place, slots) == _element(second, place, None) for place in places)


def _element(found: list[Window], place: int, slots: Mapping[int, int] | None) -> tuple[int, int]:
    """Give the slot and the element in it that a view has at a place, counted row by row."""
    for window in found:
        rest, source = place - window.target, window.source
        for times, target, stride in sorted(window.loops, key=lambda loop: -loop.target):
            steps = max(0, min(times - 1, rest // target))
            rest, source = rest - steps * target, source + steps * stride
        if rest == 0:
            return (window.slot if slots is None else slots[window.slot]), source
    raise AssertionError(f"no window has place {place}")
