"""A name that a pattern matches, to try other patterns on."""

from __future__ import annotations

from weightloom.engine.patterns import SourcePattern
from weightloom.rules.regex_tree import SAMPLES, Atom, Element, Group, Repeat, characters, parse_pattern


def example(source: SourcePattern) -> str | None:
    """Give a short text that the pattern matches, or None where none was found."""
    text = _of(parse_pattern(source.text))
    found = source.search(text)
    return text if found is not None and found.end > found.start else None


def _of(element: Element) -> str:
    if isinstance(element, Repeat):
        return _of(element.body) * max(element.least, 1 if element.most is None else 0)
    if isinstance(element, Group):
        return "" if element.looks else "".join(map(_of, element.branches[0]))
    return _of_atom(element)


def _of_atom(atom: Atom) -> str:
    if atom.token.kind == "star":
        return "7."
    if atom.token.kind == "literal":
        return atom.token.value
    possible = characters(atom)
    preferred = [c for c in "7x" if c in possible]
    return next(iter(preferred or [c for c in SAMPLES if c in possible]), "")
