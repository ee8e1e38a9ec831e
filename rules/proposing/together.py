"""What several templates together make, as a candidate, and which templates stand beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.templates import STAR, Template

# So many parts at most make one, and of more siblings than that no more than two are tried together.
_PARTS = 4
_SIBLINGS = 12
# Of more than that none are parts of one matrix: they are numbered in a way that names do not show.
_CROWD = 100


@dataclass(frozen=True)
class Found:
    """A link, and how alike the names are."""

    score: float
    link: Link

    @property
    def ends(self) -> set[tuple[bool, Template]]:
        """Its sources (True) and targets (False)."""
        return {*((True, source) for source in self.link.sources), *((False, target) for target in self.link.targets)}


def same_end(stack: Template, target: Template) -> bool:
    """Say whether both are weights or both biases, as far as they say."""
    return not (stack.end and target.end) or stack.end == target.end


def _families(templates: Sequence[Template]) -> dict[object, list[Template]]:
    """Group templates that differ in the last part of the module alone, or in the one before it alone."""
    found: dict[object, list[Template]] = defaultdict(list)
    for template in templates:
        module = template.module
        found[(module[:-1], template.end)].append(template)
        if len(module) > 1 and STAR not in module[-2:]:
            found[(module[:-2], module[-1], template.end)].append(template)
    return found


def siblings(templates: Sequence[Template], least: int) -> Iterator[tuple[Template, ...]]:
    """Give sets of templates, `least` at least, that stand beside each other."""
    for family in _families(templates).values():
        for count in range(least, _most(len(family)) + 1):
            yield from combinations(family, count)


def _most(siblings: int) -> int:
    """Give how many are tried together: the more there are beside each other, the fewer."""
    if siblings <= _SIBLINGS:
        return _PARTS
    return 2 if siblings <= _CROWD else 1


def count_of(templates: Sequence[Template]) -> str:
    """Show the last parts of some names."""
    return ", ".join(template.module[-1] for template in templates)
