"""A rule that gets no name, since renames change all that it matches before its turn comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.patterns import SourcePattern
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Rule
from weightloom.rules.document import RuleItem
from weightloom.rules.linting.examples import examples
from weightloom.rules.linting.index import PatternIndex
from weightloom.rules.linting.rivals import line_of
from weightloom.rules.problems import Mark

Complaint = tuple[Mark, str, str]


@dataclass(frozen=True, slots=True)
class _Before:
    """The renames of a layout, by their place, with an index of their patterns."""

    renames: tuple[tuple[int, WeightRenaming], ...]
    owners: tuple[int, ...]
    index: PatternIndex

    @classmethod
    def of(cls, items: Sequence[RuleItem]) -> _Before:
        renames = tuple((n, item.rule) for n, item in enumerate(items) if isinstance(item.rule, WeightRenaming))
        patterns = [(place, text) for place, (_, rule) in enumerate(renames) for text in rule.source_patterns]
        return cls(renames, tuple(place for place, _ in patterns), PatternIndex([text for _, text in patterns]))

    def first_change(self, name: str, until: int, rule: Rule, start: int = 0) -> tuple[int, str] | None:
        """Give (place, new name) for the first rename from `start` on that acts on a name for sure, or None."""
        for place in sorted({self.owners[number] for number in self.index.candidates(name)}):
            number, rename = self.renames[place]
            if start <= place and number < until and rename is not rule and rename.when in (None, rule.when):
                after = rename.rewrite(name)
                if after is not None and after != name:
                    return place, after
        return None


def starved(items: Sequence[RuleItem], own: int = 0) -> Iterator[Complaint]:
    """Yield the patterns of which every example is taken away by earlier renames; for a converter, by any.

    Items before number `own` are another file's, and are not complained of.
    """
    before = _Before.of(items)
    for number, item in enumerate(items):
        rule = item.rule
        if number < own or not isinstance(rule, WeightConverter | WeightRenaming):
            continue
        until = len(items) if isinstance(rule, WeightConverter) else number
        for text, source in zip(rule.source_patterns, rule.sources, strict=True):
            taker = _taker(source, rule, until, before)
            if taker is not None and text not in taker.source_patterns:
                said = f"pattern '{text}' never gets a name: {line_of(taker)} renames all that it matches"
                yield item.mark_of(text), "WL104", said


def _taker(source: SourcePattern, rule: Rule, until: int, before: _Before) -> WeightRenaming | None:
    """Give a rename that takes an example away, if all examples are taken; None where one gets through."""
    taker = None
    for name in examples(source):
        taker = _taken(name, source, rule, until, before)
        if taker is None:
            return None
    return taker


def _taken(name: str, source: SourcePattern, rule: Rule, until: int, before: _Before) -> WeightRenaming | None:
    taker, start = None, 0
    while True:
        change = before.first_change(name, until, rule, start)
        if change is None:
            return taker if source.search(name) is None else None
        start, name = change[0] + 1, change[1]
        taker = taker or before.renames[change[0]][1]
