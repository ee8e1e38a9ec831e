"""Target templates: what a matched span is replaced by.

A template is plain text with holes. Its text follows pattern syntax, so that a rule can be turned round: a
leading `^` is taken off (it anchors the source), lookarounds are dropped, `\\.` and `.` are a dot, `\\1` is a
hole, a group is a hole too (the source spells it `\\1`), `*.` is a numbered hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.syntax import Token, group_end, joined, tokens


@dataclass(frozen=True, slots=True)
class Ref:
    """A hole for capture `number` of the source."""

    number: int


@dataclass(frozen=True, slots=True)
class Star:
    """A hole for the star with this place (from 0, left to right)."""

    place: int


@dataclass(frozen=True, slots=True)
class Template:
    """A target pattern, read. `groups` holds the text of each capturing group that it has, by number."""

    text: str
    parts: tuple[str | Ref | Star, ...]
    anchored: bool
    groups: tuple[tuple[int, str], ...]

    @property
    def refs(self) -> tuple[int, ...]:
        """The captures that it needs, in order."""
        return tuple(part.number for part in self.parts if isinstance(part, Ref))

    @property
    def stars(self) -> int:
        """How many stars it has."""
        return sum(isinstance(part, Star) for part in self.parts)

    def render(self, captures: Mapping[int, str], stars: Sequence[str]) -> str:
        """Fill the holes."""
        return "".join(
            part if isinstance(part, str) else captures[part.number] if isinstance(part, Ref) else stars[part.place]
            for part in self.parts
        )


def parse_template(text: str) -> Template:
    """Read a target pattern; raises RuleError for what cannot be written as text (`$`, classes, quantifiers)."""
    parts = tokens(text)
    anchored = bool(parts) and parts[0].text == "^"
    reader = _Reader(text, parts[1:] if anchored else parts)
    pieces = tuple(_fused(reader.pieces()))
    return Template(text, pieces, anchored, tuple(reader.groups))


class _Reader:
    """Walks the tokens of one target once; lives only while it is read."""

    def __init__(self, text: str, parts: tuple[Token, ...]) -> None:
        self.text = text
        self.parts = parts
        self.groups: list[tuple[int, str]] = []
        self.seen_groups = 0
        self.seen_stars = 0

    def pieces(self) -> Iterator[str | Ref | Star]:
        at = 0
        while at < len(self.parts):
            token = self.parts[at]
            if token.kind in ("look", "open", "group"):
                end = group_end(self.parts, at)
                yield from self._parenthesis(token, self.parts[at + 1 : end])
                at = end
                if at + 1 < len(self.parts) and self.parts[at + 1].kind == "quantifier":
                    raise self._refuse(self.parts[at + 1])
            else:
                yield from self._single(token, at)
            at += 1

    def _parenthesis(self, token: Token, inside: tuple[Token, ...]) -> Iterator[str | Ref | Star]:
        if token.kind == "look":
            return
        if token.kind == "group":
            self.seen_groups += 1
            number = self.seen_groups
            self.seen_groups += sum(part.kind == "group" for part in inside)
            self.groups.append((number, f"({joined(inside)})"))
            yield Ref(number)
            return
        inner = _Reader(self.text, inside)
        inner.seen_groups, inner.seen_stars = self.seen_groups, self.seen_stars
        yield from inner.pieces()
        self.groups += inner.groups
        self.seen_groups, self.seen_stars = inner.seen_groups, inner.seen_stars

    def _single(self, token: Token, at: int) -> Iterator[str | Ref | Star]:
        if token.kind in ("literal", "any"):
            yield token.value
        elif token.kind == "ref":
            yield Ref(int(token.text[1]))
        elif token.kind == "star" or (token.text == "*" and self._is_last_star(at)):
            self.seen_stars += 1
            yield Star(self.seen_stars - 1)
            yield token.text[1:]
        else:
            raise self._refuse(token)

    def _is_last_star(self, at: int) -> bool:
        """A `*` that ends the text, after a dot or an underscore, is a star whose dot is not there."""
        before = self.parts[at - 1].value if at else ""
        return at == len(self.parts) - 1 and before in (".", "_")

    def _refuse(self, token: Token) -> RuleError:
        return RuleError(
            f"target pattern {self.text!r}: {token.text!r} at character {token.at} does not say which text to write",
            expected="letters, dots, \\1 to \\9, `*.`, groups, a leading `^`, lookarounds",
            hint="write the text itself, or capture it in the source and write \\1 here",
            field="target_patterns",
        )


def _fused(pieces: Iterator[str | Ref | Star]) -> Iterator[str | Ref | Star]:
    """Join neighbouring text."""
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if text:
            yield text
        text = ""
        yield piece
    if text:
        yield text
