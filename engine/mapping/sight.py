"""What rules can see of the numbers in a name: all that planning by shape has to mind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from weightloom.engine.mapping.blindness import Spelt, spelt_numbers
from weightloom.engine.mapping.claims import Drop
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule, Scope
from weightloom.engine.mapping.shapes import can_stand_in

_NUMBERS = re.compile(r"(\D*)(\d+)")


@dataclass(frozen=True, slots=True)
class Sight:
    """The numbers that rules spell out, by the text before them; and of rules that see more, what each match holds."""

    spelt: Mapping[str, frozenset[str]]
    texts: tuple[str, ...]

    def behind(self, text: str) -> frozenset[str]:
        """Give the numbers that are spelt out behind a text."""
        return frozenset().union(*(numbers for before, numbers in self.spelt.items() if text.endswith(before)))

    def anywhere(self, text: str) -> frozenset[str]:
        """Give all numbers that are spelt out: what stands before a number may be renamed."""
        return frozenset().union(*self.spelt.values())

    def may_see(self, name: str) -> bool:
        """Say whether a rule that sees numbers may match a name."""
        return any(text in name for text in self.texts)


def sight(rules: Iterable[Rule]) -> Sight:
    """Find out what rules can see of numbers."""
    spelt: dict[str, set[str]] = defaultdict(set)
    texts: list[str] = []
    for rule in rules:
        found = _spelt_by(rule)
        if found is None and isinstance(rule, Renaming | Drop):
            texts += [source.required for source in rule.sources]
        for each in (*(found or ()), *(_spelt_in(rule.scope) if rule.scope else ())):
            spelt[each.before].add(each.number)
    return Sight({before: frozenset(numbers) for before, numbers in spelt.items()}, tuple(texts))


def _spelt_by(rule: Rule) -> frozenset[Spelt] | None:
    """Give the numbers that a rule's patterns spell out, or None when it is not digit-blind."""
    # A class with a way of matching of its own, as IndexMap, may see what it likes.
    if isinstance(rule, Renaming) and type(rule).match is not Renaming.match:
        return None
    texts = rule.source_patterns if isinstance(rule, Renaming | Drop) else ()
    if not can_stand_in(texts):
        return None
    if isinstance(rule, Renaming):
        if not can_stand_in(rule.target_patterns):
            return None
        texts = (*texts, *(group for template in rule.templates for _, group in template.groups))
    numbers = [_spelt_numbers(text) for text in texts]
    found = [known for known in numbers if known is not None]
    return frozenset[Spelt]().union(*found) if len(found) == len(numbers) else None


def _spelt_in(scope: Scope) -> Iterator[Spelt]:
    """Give the numbers in a scope; either part of it may begin a name."""
    for path in (scope.base, scope.prefix):
        yield from (Spelt(before, number) for before, number in _NUMBERS.findall(path))


@lru_cache(maxsize=8192)
def _spelt_numbers(text: str) -> frozenset[Spelt] | None:
    return spelt_numbers(text)
