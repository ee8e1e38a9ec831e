"""Globs over dotted names: `*` stands for a part of one segment, a segment `**` for any number of segments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from weightloom.engine.errors import UsageError

_ANY = "**"
_STAR = re.compile(r"\*\*|\*")
_REFUSED = frozenset("?[]{}\\")
# Each star may multiply the ways in which a name is tried.
MAX_STARS = 8
MAX_LENGTH = 500


@dataclass(frozen=True)
class Glob:
    """One pattern, matched against whole names; raises UsageError for a text that is none.

    `*` matches any characters, or none, but no dot; `**`, alone between dots, matches any number of segments, zero
    among them. All else stands for itself.
    """

    text: str

    def __post_init__(self) -> None:
        problem = _problem(self.text)
        if problem is not None:
            raise UsageError(
                f"the pattern {self.text!r} {problem}",
                expected="segments between dots, with * inside one or ** in the place of several",
                field="pattern",
            )

    @cached_property
    def stars(self) -> tuple[str, ...]:
        """Its stars, in order."""
        return tuple(_STAR.findall(self.text))

    def matches(self, name: str) -> bool:
        """Say whether the whole name is matched."""
        return self._regex.fullmatch(name) is not None

    def captures(self, name: str) -> tuple[str, ...] | None:
        """Give what each star stands for in a name, dots at the ends left off; None for one that does not match."""
        found = self._regex.fullmatch(name)
        return None if found is None else tuple(part.strip(".") for part in found.groups())

    def filled(self, captures: tuple[str, ...]) -> str:
        """Put what was captured in the place of the stars, in order."""
        parts = iter(captures)
        segments = (_STAR.sub(lambda _: next(parts), segment) for segment in self.text.split("."))
        return ".".join(segment for segment in segments if segment)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        segments = self.text.split(".")
        if segments == [_ANY]:
            return re.compile("(.*)", re.DOTALL)
        last = len(segments) - 1
        made, joint = "", ""
        for number, segment in enumerate(segments):
            if segment != _ANY:
                made, joint = made + joint + _segment(segment), r"\."
            elif number == last:
                made += r"((?:\.[^.]+)*)"
            else:
                made, joint = made + joint + r"((?:[^.]+\.)*)", ""
        return re.compile(made)


def _segment(text: str) -> str:
    return "([^.]*)".join(re.escape(part) for part in text.split("*"))


def _problem(text: str) -> str | None:
    segments = text.split(".")
    if not all(segments):
        return "has an empty segment"
    if len(text) > MAX_LENGTH or text.count("*") > 2 * MAX_STARS or len(_STAR.findall(text)) > MAX_STARS:
        return f"has more than {MAX_LENGTH} characters or {MAX_STARS} stars"
    if _REFUSED & set(text):
        return f"has one of {' '.join(sorted(_REFUSED))}"
    if any(_ANY in segment and segment != _ANY for segment in segments):
        return "has ** beside other characters of a segment"
    if any(pair == (_ANY, _ANY) for pair in pairwise(segments)):
        return "has ** twice in a row"
    return None
