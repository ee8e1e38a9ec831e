"""What rules can see of the numbers in a name: all that planning by shape has to mind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from weightloom.engine.blindness import literal_numbers
from weightloom.engine.claims import Drop
from weightloom.engine.index_map import IndexMap
from weightloom.engine.renaming import Renaming
from weightloom.engine.rule import Rule
from weightloom.engine.shapes import can_stand_in

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Sight:
    """The numbers that rules spell out; and of the rules that see more of a number, a text that each match holds."""

    spelt_out: frozenset[str]
    texts: tuple[str, ...]

    def may_see(self, name: str) -> bool:
        """Say whether a rule that sees numbers may match a name."""
        return any(text in name for text in self.texts)


def sight(rules: Iterable[Rule]) -> Sight:
    """Find out what rules can see of numbers."""
    spelt_out: set[str] = set()
    texts: list[str] = []
    for rule in rules:
        numbers = _spelt_out(rule)
        if numbers is not None:
            spelt_out |= numbers
        elif isinstance(rule, Renaming | Drop):
            texts += [source.required for source in rule.sources]
        if rule.scope is not None:
            spelt_out |= set(_NUMBERS.findall(f"{rule.scope.base}.{rule.scope.prefix}"))
    return Sight(frozenset(spelt_out), tuple(texts))


def _spelt_out(rule: Rule) -> frozenset[str] | None:
    """Give the numbers that a rule spells out, or None when it is not digit-blind."""
    if isinstance(rule, IndexMap):
        return None
    texts = rule.source_patterns if isinstance(rule, Renaming | Drop) else ()
    targets = rule.target_patterns if isinstance(rule, Renaming) else ()
    groups = (
        [group for template in rule.templates for _, group in template.groups] if isinstance(rule, Renaming) else []
    )
    numbers = [_numbers_of(text) for text in (*texts, *groups)]
    if None in numbers or not can_stand_in((*texts, *targets)):
        return None
    return frozenset[str]().union(*(found for found in numbers if found is not None))


@lru_cache(maxsize=8192)
def _numbers_of(text: str) -> frozenset[str] | None:
    return literal_numbers(text)
