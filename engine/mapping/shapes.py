"""Names by shape: digits abstracted, so that one representative stands for every name of its shape.

A checkpoint has 100,000 names of some 40 shapes. What is done to each name is done by the string methods of
Python's core on many names at once: one translation of all digits, one slice for each number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, repeat
from operator import itemgetter, not_

_NUMBER = re.compile(r"(\d+)")
_ZEROS = re.compile("0+")
_STAND_IN = re.compile(r"90(\d{4})09")
_TOUCHING = re.compile(r"\d90\d{4}09|90\d{4}09\d")
_MOST_NUMBERS = 10_000
# A number as long as a stand-in might be one.
_LONG = "0" * 8
_TO_ZERO = str.maketrans("123456789", "0" * 9)


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of one shape whose numbers also stand at the same places."""

    places: tuple[slice, ...]
    names: tuple[str, ...]

    def column(self, place: int) -> Iterable[str]:
        """Give the number of each name at one of the places."""
        return map(itemgetter(self.places[place]), self.names)

    def split(self, spelt: Sequence[frozenset[str]]) -> Iterator[tuple[tuple[str | None, ...], Layout]]:
        """Part the names by the numbers that are spelt out at each place; None stands for all others."""
        parts: dict[tuple[str | None, ...], Sequence[str]] = {(): self.names}
        for place, numbers in zip(self.places, spelt, strict=True):
            parts = {
                (*fixed, number): part
                for fixed, names in parts.items()
                for number, part in _parted(names, place, numbers).items()
            }
        yield from ((fixed, Layout(self.places, tuple(names))) for fixed, names in parts.items())


@dataclass(frozen=True)
class Shape:
    """One shape of name: a representative with stand-in numbers, and the names that have it.

    `spelt` are, for each place of a number, those that stand for themselves: a stand-in is none of them.
    """

    representative: str
    layouts: tuple[Layout, ...]
    spelt: tuple[frozenset[str], ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names of this shape."""
        return tuple(chain.from_iterable(layout.names for layout in self.layouts))


@dataclass(frozen=True, slots=True)
class Form:
    """A text whose numbers are holes: for each hole the place of a name's number that goes there, or digits."""

    text: str
    holes: tuple[int | str, ...]

    def fill(self, numbers: Sequence[str]) -> str:
        """Write a name's numbers into the holes."""
        return self.text % tuple([numbers[hole] if isinstance(hole, int) else hole for hole in self.holes])

    def fill_all(self, shape: Shape) -> list[str]:
        """Write the numbers of each name of a shape into the holes."""
        return [text for layout in shape.layouts for text in map(self.text.__mod__, rows((self,), layout))]


def rows(forms: Iterable[Form], layout: Layout) -> Iterable[tuple[str, ...]]:
    """Give what goes into the holes of several forms, one after the other, for each name."""
    holes = [hole for form in forms for hole in form.holes]
    count = len(layout.names)
    columns = [layout.column(hole) if isinstance(hole, int) else repeat(hole, count) for hole in holes]
    return zip(*columns, strict=True) if columns else repeat((), count)


def shape_text(name: str) -> str:
    """Show a name with each number as `*`."""
    return _NUMBER.sub("*", name)


def shape_texts(names: Iterable[str]) -> set[str]:
    """Show the shapes that names have."""
    zeros, alone = _by_zeros(tuple(names))
    return {*(_ZEROS.sub("*", text) for text in zeros), *map(shape_text, alone)}


def by_shape(names: Sequence[str], spelt: Callable[[str], frozenset[str]]) -> tuple[list[Shape], list[str]]:
    """Group names by shape; and give those for which nothing can stand in.

    `spelt` gives, for the text before a number, the numbers that count as text there.
    """
    zeros, alone = _by_zeros(names)
    found: dict[tuple[str | None, ...], list[Layout]] = defaultdict(list)
    for text, members in zeros.items():
        places = tuple(slice(*match.span()) for match in _ZEROS.finditer(text))
        if _LONG in text or len(places) > _MOST_NUMBERS:
            alone += members
            continue
        shape = _ZEROS.sub("0", text)
        for fixed, layout in Layout(places, tuple(members)).split(_spelt_at(shape, spelt)):
            found[(shape, *fixed)].append(layout)
    shapes = [_shape(text or "", fixed, layouts, spelt) for (text, *fixed), layouts in found.items()]
    return shapes, alone


def _spelt_at(text: str, spelt: Callable[[str], frozenset[str]]) -> tuple[frozenset[str], ...]:
    return tuple(map(spelt, _NUMBER.split(text)[:-1:2]))


def _shape(
    text: str, fixed: Sequence[str | None], layouts: list[Layout], spelt: Callable[[str], frozenset[str]]
) -> Shape:
    return Shape(_representative(layouts[0].names[0], fixed), tuple(layouts), _spelt_at(text, spelt))


def form(text: str) -> Form:
    """Turn a representative, or what became of it, into a form."""
    return Form(_NUMBER.sub("%s", text.replace("%", "%%")), tuple(map(_hole, _NUMBER.findall(text))))


def can_stand_in(texts: Iterable[str]) -> bool:
    """Say whether stand-in numbers cannot be mistaken for a number in the texts."""
    return not any(_STAND_IN.search(text) for text in texts)


def touches(text: str) -> bool:
    """Say whether a stand-in number ended up next to another digit, where it would no longer be one number."""
    return _TOUCHING.search(text) is not None


def stand_ins(text: str) -> Iterator[tuple[str, int]]:
    """Give, for each stand-in in what became of a representative, the text before it and the place it stands for."""
    pieces = _NUMBER.split(text)
    for before, number in zip(pieces[::2], pieces[1::2], strict=False):
        hole = _hole(number)
        if isinstance(hole, int):
            yield before, hole


def numbers_of(name: str) -> list[str]:
    """Give the numbers in a name."""
    return _NUMBER.findall(name)


def _by_zeros(names: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Group names by their text with a 0 for each digit; and give those that are not plain lines of ASCII."""
    alone: list[str] = []
    text = "\n".join(names)
    if not text.isascii() or text.count("\n") != len(names) - 1:
        alone = [name for name in names if not _is_line(name)]
        names = list(filter(_is_line, names))
        text = "\n".join(names)
    found: dict[str, list[str]] = defaultdict(list)
    # Without names there is one empty line.
    for name, zeros in zip(names, text.translate(_TO_ZERO).split("\n"), strict=False):
        found[zeros].append(name)
    return found, alone


def _parted(names: Sequence[str], place: slice, numbers: frozenset[str]) -> Mapping[str | None, Sequence[str]]:
    """Part names by their number at a place, if it is one of these; the others are under None."""
    known = dict(zip(numbers, numbers, strict=True))
    marks = list(map(known.get, map(itemgetter(place), names))) if known else []
    if not any(marks):
        return {None: names}
    found: dict[str | None, list[str]] = defaultdict(list)
    for number, name in zip(filter(None, marks), compress(names, marks), strict=True):
        found[number].append(name)
    others = list(compress(names, map(not_, marks)))
    return found | {None: others} if others else found


def _is_line(name: str) -> bool:
    return name.isascii() and "\n" not in name


def _hole(number: str) -> int | str:
    found = _STAND_IN.fullmatch(number)
    return number if found is None else int(found[1])


def _representative(name: str, fixed: Sequence[str | None]) -> str:
    pieces = _NUMBER.split(name)
    for place, number in enumerate(fixed):
        if number is None:
            pieces[2 * place + 1] = f"90{place:04d}09"
    return "".join(pieces)
