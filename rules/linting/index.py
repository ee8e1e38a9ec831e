"""Which of many patterns may match a name: by three characters that each of them needs, not one after another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from weightloom.rules.linting.regex_tree import Atom, Group, parse_pattern

_WIDTH = 3


class PatternIndex:
    """Answers `candidates(name)`: the numbers of the patterns that can match it, ascending; some of them may not."""

    def __init__(self, patterns: Sequence[str]) -> None:
        needed = [_pieces(_runs(text)) for text in patterns]
        common = Counter(piece for pieces in needed for piece in pieces)
        self._by_piece: dict[str, list[int]] = defaultdict(list)
        self._any: list[int] = []
        for number, pieces in enumerate(needed):
            rarest = min(sorted(pieces), key=common.__getitem__, default=None)
            (self._any if rarest is None else self._by_piece[rarest]).append(number)

    def candidates(self, name: str) -> list[int]:
        """Give the numbers of the patterns to try on a name."""
        found = list(self._any)
        for piece in _pieces((name,)):
            found += self._by_piece.get(piece, ())
        return sorted(found)


def _pieces(texts: Iterable[str]) -> set[str]:
    return {text[at : at + _WIDTH] for text in texts for at in range(len(text) - _WIDTH + 1)}


@lru_cache(maxsize=8192)
def _runs(pattern: str) -> tuple[str, ...]:
    """Give texts that are in every name that a pattern matches."""
    return tuple(_literal_runs(parse_pattern(pattern)))


def _literal_runs(group: Group) -> Iterator[str]:
    if len(group.branches) != 1 or group.looks:
        return
    run = ""
    for element in group.branches[0]:
        if isinstance(element, Atom) and element.token.kind == "literal":
            run += element.token.value
            continue
        yield run
        run = ""
        if isinstance(element, Group):
            yield from _literal_runs(element)
    yield run
