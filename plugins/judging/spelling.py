"""Model types as people spell them: the exact name first, another letter case or separator only where one name fits."""

from __future__ import annotations

from collections.abc import Iterable

from weightloom.rules.plain import plain


def spellings(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Give the known name that this is, else all that differ from it in case, `-` and `_` alone, sorted."""
    names = set(known)
    return (name,) if name in names else tuple(sorted(each for each in names if plain(each) == plain(name)))


def only_spelling(name: str, known: Iterable[str]) -> str | None:
    """Give the known name that this is, or the only one that is spelt so; None for none, and for several."""
    found = spellings(name, known)
    return found[0] if len(found) == 1 else None
