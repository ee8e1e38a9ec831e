"""Which heads stay: queries in groups of equal size, one key and value head for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Heads:
    """`count` query heads in `groups`, of which `removed` go; a group goes when all of its queries do."""

    count: int
    groups: int
    removed: frozenset[int]

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The query heads that stay."""
        return tuple(head for head in range(self.count) if head not in self.removed)

    @cached_property
    def kept_groups(self) -> tuple[int, ...]:
        """The groups that stay."""
        return tuple(sorted({head // self._size for head in self.kept}))

    @property
    def even(self) -> bool:
        """Whether the groups that stay have as many queries each."""
        if self.count % self.groups:
            return False
        left = {group: sum(head // self._size == group for head in self.kept) for group in self.kept_groups}
        return len(set(left.values())) == 1

    @property
    def _size(self) -> int:
        return max(self.count // self.groups, 1)
