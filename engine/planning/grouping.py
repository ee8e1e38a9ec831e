"""Long lists of names and findings as a few lines: joined by shape, the most frequent first, cut at a count.

Every function takes lines and how many of them to give at most; `None` gives each line as it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from weightloom.engine.mapping.shapes import shape_text

EXAMPLES = 10
_FEW = 2
_RULE = " ["
_LAYER = re.compile(r"(.*?\.\d+)\.")


def grouped(lines: Iterable[str], most: int | None = EXAMPLES) -> Iterator[str]:
    """Join lines that differ in numbers alone, most frequent first, and cut the list at `most`.

    What is in brackets behind a name, the rule and its place, stays as it is where all lines of a group have it.
    """
    groups = _by_shape(lines)
    return _first({_with_rule(text, members): members for text, members in groups.items()}, most)


def grouped_names(names: Iterable[str], most: int | None = EXAMPLES) -> Iterator[str]:
    """Do the same for names, and join those of one layer whose shapes of name no other has."""
    return _first(_by_layer(_by_shape(names)), most)


def count_grouped(names: Iterable[str]) -> int:
    """Say how many lines `grouped_names` makes of names, uncut."""
    return len(_by_layer(_by_shape(names)))


def grouped_by_first(lines: Iterable[str], most: int | None = EXAMPLES) -> Iterator[str]:
    """Join lines that differ in numbers alone, as the first of them: for lines that are about those numbers."""
    groups = {
        members[0] if len(members) == 1 else f"{members[0]} and others alike, in all": members
        for members in _by_shape(lines).values()
    }
    return _first(groups, most)


def grouped_mismatches(lines: Iterable[str], most: int | None = EXAMPLES) -> Iterator[str]:
    """Join lines that differ in the numbers of their name alone: the shapes that follow are what matters."""
    groups: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        name, colon, rest = line.partition(": ")
        groups[f"{shape_text(name)}{colon}{rest}"].append(line)
    shown = {members[0] if len(members) == 1 else text: members for text, members in groups.items()}
    return _first(shown, most)


def as_they_are(lines: Iterable[str], most: int | None = EXAMPLES) -> Iterator[str]:
    """Give each line as it is, for lines that are sentences."""
    yield from lines


def by_layer(names: Iterable[str]) -> dict[str, list[str]]:
    """Put names together by their part up to the first number: `model.layers.1` (all of a name without one)."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        start = _LAYER.match(name)
        found[start[1] if start else name].append(name)
    return found


def _by_shape(lines: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[shape_text(line)].append(line)
    return found


def _with_rule(text: str, members: Iterable[str]) -> str:
    (rule, *others) = {member.partition(_RULE)[2] for member in members}
    return text if others or not rule else f"{text.partition(_RULE)[0]}{_RULE}{rule}"


def _by_layer(groups: Mapping[str, list[str]]) -> dict[str, list[str]]:
    found = {shape: names for shape, names in groups.items() if len(names) > 1}
    for layer, names in by_layer(names[0] for names in groups.values() if len(names) == 1).items():
        found |= {f"{layer}.*": names} if len(names) > _FEW else {name: [name] for name in names}
    return found


def _first(groups: Mapping[str, list[str]], most: int | None) -> Iterator[str]:
    if most is None:
        yield from (member for members in groups.values() for member in members)
        return
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    for text, members in ranked[:most]:
        yield members[0] if len(members) == 1 else f"{text} x{len(members)}"
    if len(ranked) > most:
        rest = sum(len(members) for _, members in ranked[most:])
        yield f"... and {rest} more of {len(ranked) - most} other shapes of name (`plan --all` lists them)"
