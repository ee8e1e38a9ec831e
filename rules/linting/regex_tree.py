"""A pattern as a tree, for the linter: sequences, alternatives and repetitions over single tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import regex

from weightloom.engine.mapping.syntax import Token, group_end, tokens

# Characters that stand for their kind: what a pattern says of one it says of the others.
SAMPLES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/ :"
_COUNTS = re.compile(r"\{(\d*)(,?)(\d*)\}")
_EMPTY_ESCAPES = ("\\b", "\\B", "\\A", "\\Z", "\\z", "\\G", "\\K", "\\m", "\\M")


@dataclass(frozen=True, slots=True)
class Atom:
    """One token that is no parenthesis."""

    token: Token

    @property
    def consumes(self) -> bool:
        """Say whether it takes a character at least."""
        return self.token.kind not in ("anchor", "ref") and self.token.text not in _EMPTY_ESCAPES


@dataclass(frozen=True, slots=True)
class Group:
    """Parentheses with their alternatives; `token` is what opens them. The whole pattern is one too, without."""

    branches: tuple[Sequence, ...]
    token: Token | None = None

    @property
    def looks(self) -> bool:
        """Say whether it is a lookaround, which takes no character."""
        return self.token is not None and self.token.kind == "look"


@dataclass(frozen=True, slots=True)
class Repeat:
    """What stands before a quantifier; `most` None is without limit."""

    body: Atom | Group
    least: int
    most: int | None


Element = Atom | Group | Repeat
Sequence = tuple[Element, ...]


@lru_cache(maxsize=1024)
def parse_pattern(text: str) -> Group:
    """Read a pattern that the engine took; raises RuleError for one that it would not."""
    return _group(tokens(text), None)


def _group(parts: tuple[Token, ...], opened: Token | None) -> Group:
    branches: list[list[Element]] = [[]]
    at = 0
    while at < len(parts):
        token = parts[at]
        if token.kind == "alt":
            branches.append([])
        elif token.kind == "quantifier" and branches[-1] and not isinstance(branches[-1][-1], Repeat):
            body = branches[-1].pop()
            assert not isinstance(body, Repeat)
            branches[-1].append(_repeat(body, token.text))
        elif token.kind in ("group", "open", "look"):
            end = group_end(parts, at)
            branches[-1].append(_group(parts[at + 1 : end], token))
            at = end
        else:
            branches[-1].append(Atom(token))
        at += 1
    return Group(tuple(tuple(branch) for branch in branches), opened)


def _repeat(body: Atom | Group, quantifier: str) -> Repeat:
    counts = _COUNTS.match(quantifier)
    if counts is None:
        return Repeat(body, int(quantifier[0] == "+"), 1 if quantifier[0] == "?" else None)
    least = int(counts[1] or 0)
    most = int(counts[3]) if counts[3] else None
    return Repeat(body, least, most if counts[2] else least)


def walk(element: Element) -> Iterator[Element]:
    """Yield an element and all below it."""
    yield element
    if isinstance(element, Repeat):
        yield from walk(element.body)
    elif isinstance(element, Group):
        for branch in element.branches:
            for each in branch:
                yield from walk(each)


def consumes(element: Element) -> bool:
    """Say whether an element takes a character at least, whatever it matches."""
    if isinstance(element, Repeat):
        return element.least > 0 and consumes(element.body)
    if isinstance(element, Group):
        return not element.looks and all(any(map(consumes, branch)) for branch in element.branches)
    return element.consumes


def characters(element: Element) -> frozenset[str]:
    """Give which of the samples an element can contain."""
    if isinstance(element, Atom):
        return _of_token(element.token)
    found: frozenset[str] = frozenset()
    for inner in walk(element):
        if isinstance(inner, Atom):
            found |= _of_token(inner.token)
    return found


def first_characters(branch: Sequence) -> frozenset[str]:
    """Give which of the samples a sequence can begin with."""
    found: frozenset[str] = frozenset()
    for element in branch:
        found |= _first(element)
        if consumes(element):
            break
    return found


def _first(element: Element) -> frozenset[str]:
    if isinstance(element, Repeat):
        return _first(element.body)
    if isinstance(element, Group):
        return frozenset().union(*(first_characters(branch) for branch in element.branches if not element.looks))
    return _of_token(element.token)


@lru_cache(maxsize=1024)
def _of_token(token: Token) -> frozenset[str]:
    if token.kind == "star":
        return frozenset(SAMPLES)
    if token.kind == "literal":
        return frozenset(token.value)
    if token.kind in ("anchor", "ref") or token.text in _EMPTY_ESCAPES:
        return frozenset()
    try:
        return frozenset(c for c in SAMPLES if regex.fullmatch(token.text, c))
    except regex.error:
        return frozenset(SAMPLES)
