"""Names by template: the text of a name, and the numbers in it that tell it from its like.

A number is one of those where it is a whole part of the name (`layers.12`), or where there are many of its kind
(`h_12`); in `w1` and `conv2` it is text. So a model's thousands of names are a few dozen templates.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_NUMBER = re.compile(r"(\d+)")
# As a page's script can count; a longer one is text, as is one with zeros before it, which would be lost.
_PLAIN = re.compile(r"0|[1-9][0-9]{0,8}")
_MANY = 5


@dataclass(frozen=True, slots=True)
class Spelling:
    """A name as the text between its numbers, one part more than there are numbers, and the numbers."""

    parts: tuple[str, ...]
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return self.parts[0] + "".join(
            f"{number}{part}" for number, part in zip(self.numbers, self.parts[1:], strict=True)
        )


def spelt(names: Iterable[str]) -> Mapping[str, Spelling]:
    """Give the spelling of each name; which numbers count depends on all of them."""
    return _spelt(tuple(names))


# A checkpoint's names are spelt once, however often its picture is drawn.
@lru_cache(maxsize=4)
def _spelt(names: tuple[str, ...]) -> Mapping[str, Spelling]:
    alike: dict[tuple[str, ...], list[tuple[str, list[str]]]] = defaultdict(list)
    for name in names:
        pieces = _NUMBER.split(name)
        alike[tuple(pieces[::2])].append((name, pieces))
    found: dict[str, Spelling] = {}
    for texts, members in alike.items():
        counted = tuple(_counted(texts, members))
        if all(counted):
            found |= {name: Spelling(texts, tuple(map(int, pieces[1::2]))) for name, pieces in members}
        else:
            found |= {name: _spelling(pieces, counted) for name, pieces in members}
    return found


def _counted(texts: Sequence[str], members: Sequence[tuple[str, list[str]]]) -> Iterator[bool]:
    """Say of each place of a number whether it counts, or is text."""
    for place in range(len(texts) - 1):
        numbers = {pieces[2 * place + 1] for _, pieces in members}
        counts = len(numbers) >= _MANY or _is_part(texts, place)
        yield counts and all(map(_PLAIN.fullmatch, numbers))


def _is_part(texts: Sequence[str], place: int) -> bool:
    """Say whether a number stands between two dots, or between one and an end of the name."""
    before, after = texts[place], texts[place + 1]
    starts = before.endswith(".") or (place == 0 and not before)
    return starts and (after.startswith(".") or (place == len(texts) - 2 and not after))


def _spelling(pieces: Sequence[str], counted: Sequence[bool]) -> Spelling:
    parts, numbers = [pieces[0]], list[int]()
    for counts, number, text in zip(counted, pieces[1::2], pieces[2::2], strict=True):
        if counts:
            numbers.append(int(number))
            parts.append(text)
        else:
            parts[-1] += number + text
    return Spelling(tuple(parts), tuple(numbers))
