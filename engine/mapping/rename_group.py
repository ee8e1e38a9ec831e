"""Renames that act only together, so that an already converted checkpoint is left alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.patterns import check_holes, literal_pattern
from weightloom.engine.mapping.renaming import Renaming


@dataclass(frozen=True, init=False)
class RenameGroup(Renaming):
    """N renames that act together, and only if the first one's pattern matches some name in its scope.

    An already converted checkpoint, which lacks that name, is left alone. Each name takes one rename of the
    group at most. Raises RuleError unless there are as many targets as sources.
    """

    kind: ClassVar[str] = "group"

    def _check(self) -> None:
        if len(self.source_patterns) != len(self.target_patterns):
            raise RuleError(
                f"a group of {len(self.source_patterns)} sources and {len(self.target_patterns)} targets",
                expected="one target for each source",
                field="target_patterns",
            )
        for template, source in zip(self.templates, self.sources, strict=True):
            check_holes(template, [source])

    def turns_on(self, names: Iterable[str]) -> bool:
        """Say whether the first pattern matches any of the names (as the scope shows them)."""
        return any(self.sources[0].search(name) for name in names)

    def inverse(self) -> RenameGroup:
        """Swap each pair. The last pair's name is the one that only a converted checkpoint has: it leads."""
        if self.origin is not None:
            return self._restored()
        pairs = list(zip(self.target_patterns, self.source_patterns, strict=True))[::-1]
        try:
            return self.replace(
                source_patterns=tuple(literal_pattern(target) for target, _ in pairs),
                target_patterns=tuple(source for _, source in pairs),
                origin=self,
            )
        except RuleError as error:
            raise self._refuse_inverse(error.seen) from error
