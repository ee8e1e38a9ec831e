"""Names by shape: digits abstracted, so that one representative stands for every name of its shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"(\d+)")
_STAND_IN = re.compile(r"90(\d{4})09")
_TOUCHING = re.compile(r"\d90\d{4}09|90\d{4}09\d")
_MOST_NUMBERS = 10_000


@dataclass(frozen=True, slots=True)
class Member:
    """A name of a shape: its position in the list it came from, and its own numbers."""

    position: int
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape of name: a representative with stand-in numbers, and the names that have it."""

    representative: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A text with places for a member's numbers."""

    text: str
    order: tuple[int, ...]

    def fill(self, numbers: Sequence[str]) -> str:
        """Write a member's numbers into the places."""
        return self.text % tuple(numbers[i] for i in self.order) if self.order else self.text % ()


def shape_text(name: str) -> str:
    """Show a name with each number as `*`."""
    return _NUMBER.sub("*", name)


def by_shape(names: Sequence[str], spelt_out: frozenset[str]) -> list[Shape]:
    """Group names by shape; the numbers in `spelt_out` count as text."""
    found: dict[tuple[str | None, ...], list[Member]] = {}
    for position, name in enumerate(names):
        pieces = _NUMBER.split(name)
        numbers = tuple(pieces[1::2])
        if len(numbers) > _MOST_NUMBERS:
            # More than there are stand-ins for: a shape of its own.
            key: tuple[str | None, ...] = (name, None)
        elif spelt_out:
            fixed = tuple(number if number in spelt_out else None for number in numbers)
            key = (*pieces[::2], *fixed)
        else:
            key = tuple(pieces[::2])
        found.setdefault(key, []).append(Member(position, numbers))
    return [Shape(_representative(names[members[0].position], spelt_out), tuple(members)) for members in found.values()]


def form(text: str) -> Form:
    """Turn a representative, or what became of it, into a form."""
    order = tuple(int(number) for number in _STAND_IN.findall(text))
    return Form(_STAND_IN.sub("%s", text.replace("%", "%%")), order)


def can_stand_in(texts: Iterable[str]) -> bool:
    """Say whether stand-in numbers cannot be mistaken for a number in the texts (patterns, names)."""
    return not any(_STAND_IN.search(text) for text in texts)


def touches(text: str) -> bool:
    """Say whether a stand-in number ended up next to another digit, where it would no longer be one number."""
    return _TOUCHING.search(text) is not None


def _representative(name: str, spelt_out: frozenset[str]) -> str:
    pieces = _NUMBER.split(name)
    for number in range(min(len(pieces) // 2, _MOST_NUMBERS)):
        if pieces[2 * number + 1] not in spelt_out:
            pieces[2 * number + 1] = f"90{number:04d}09"
    return "".join(pieces)
