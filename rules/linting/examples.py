"""Names that a pattern matches, to try other patterns on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from weightloom.engine.mapping.patterns import SourcePattern
from weightloom.rules.linting.regex_tree import SAMPLES, Atom, Element, Group, Repeat, characters, parse_pattern

_MOST_BRANCHES = 3
_AROUND = (("", ""), ("zz.", ""), ("", ".zz"), ("zz.", ".zz"))


@dataclass(frozen=True, slots=True)
class _Taste:
    """How to choose where a pattern leaves a choice."""

    preferred: str = "7x"
    branch: int = 0
    optional: bool = False


def example(source: SourcePattern) -> str | None:
    """Give a short text that the pattern matches, or None where none was found."""
    return _matched(source, _of(parse_pattern(source.text), _Taste()))


def examples(source: SourcePattern) -> Iterator[str]:
    """Yield texts that the pattern matches: other characters, branches, optional parts, and text around it."""
    tree = parse_pattern(source.text)
    for optional, branch, preferred in product((False, True), range(_MOST_BRANCHES), ("7x", "3y")):
        text = _of(tree, _Taste(preferred, branch, optional))
        for before, after in _AROUND:
            found = _matched(source, f"{before}{text}{after}")
            if found is not None:
                yield found


def _matched(source: SourcePattern, text: str) -> str | None:
    found = source.search(text)
    return text if found is not None and found.end > found.start else None


def _of(element: Element, taste: _Taste) -> str:
    if isinstance(element, Repeat):
        wanted = 1 if element.most is None or taste.optional else 0
        return _of(element.body, taste) * max(element.least, wanted)
    if isinstance(element, Group):
        branch = element.branches[taste.branch % len(element.branches)]
        return "" if element.looks else "".join(_of(each, taste) for each in branch)
    return _of_atom(element, taste)


def _of_atom(atom: Atom, taste: _Taste) -> str:
    if atom.token.kind == "star":
        return f"{taste.preferred[0]}."
    if atom.token.kind == "literal":
        return atom.token.value
    possible = characters(atom)
    preferred = [c for c in taste.preferred if c in possible]
    return next(iter(preferred or [c for c in SAMPLES if c in possible]), "")
