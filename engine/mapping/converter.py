"""WeightConverter: patterns and the ops between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from weightloom.engine.errors import NotInvertible, RuleError
from weightloom.engine.mapping.patterns import check_references, literal_pattern
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Patterns
from weightloom.engine.ops.base import ConversionOp


@dataclass(frozen=True, init=False)
class WeightConverter(Renaming):
    """Tensors of the source patterns, through ops, to tensors of the target patterns.

    A star that the targets share is a variable: one group for each of its values. A star that only a source
    has collects a list, by number. Raises RuleError without ops, or with two collecting stars in a pattern.
    """

    kind: ClassVar[str] = "convert"

    operations: tuple[ConversionOp, ...]

    def __init__(
        self,
        source_patterns: Patterns,
        target_patterns: Patterns,
        operations: Iterable[ConversionOp],
        **common: Any,
    ) -> None:
        ops = tuple(operations)
        if not ops or not all(isinstance(op, ConversionOp) for op in ops):
            raise RuleError(
                f"a converter with operations {list(operations)!r}",
                expected="a list of ops, one at least",
                hint="use WeightRenaming where only names change",
                field="operations",
            )
        self._set(operations=ops)
        super().__init__(source_patterns, target_patterns, **common)
        if not isinstance(self.optional, bool) and set(self.optional) - set(self.source_patterns):
            raise RuleError(
                f"optional names {sorted(set(self.optional) - set(self.source_patterns))}",
                expected=f"some of the source patterns {list(self.source_patterns)}",
                field="optional",
            )

    def _check(self) -> None:
        for template in self.templates:
            check_references(template, self.sources)
        for text, source in zip(self.source_patterns, self.sources, strict=True):
            if len(source.stars) - self.paired > 1:
                raise RuleError(
                    f"source pattern {text!r} collects {len(source.stars) - self.paired} stars",
                    expected="one collecting star a pattern; a star of the target pairs with one of the source",
                    field="source_patterns",
                    rule=self.summary(),
                )
        for text, template in zip(self.target_patterns, self.templates, strict=True):
            if template.stars - self.paired > 1:
                raise RuleError(
                    f"target pattern {text!r} has {template.stars - self.paired} stars to number",
                    expected="one at most",
                    field="target_patterns",
                    rule=self.summary(),
                )

    @cached_property
    def paired(self) -> int:
        """How many stars, from the left, are variables of the group."""
        sources = min(len(source.stars) for source in self.sources)
        return min(sources, min(template.stars for template in self.templates))

    def collects(self, index: int) -> bool:
        """Say whether source `index` collects a list."""
        return len(self.sources[index].stars) > self.paired

    def numbers(self, index: int) -> bool:
        """Say whether target `index` is a numbered list."""
        return self.templates[index].stars > self.paired

    def may_lack(self, index: int) -> bool:
        """Say whether a group may be without source `index`."""
        return self.optional is True or (
            not isinstance(self.optional, bool) and self.source_patterns[index] in self.optional
        )

    def _anchor(self, index: int) -> tuple[dict[int, str], bool]:
        groups = {number: text for template in self.templates for number, text in template.groups}
        pairs = len(self.source_patterns) == len(self.target_patterns)
        anchored = self.templates[index].anchored if pairs else any(t.anchored for t in self.templates)
        return groups, anchored

    def inverse(self) -> WeightConverter:
        """Swap the patterns and undo the ops from last to first."""
        if self.origin is not None:
            return self._restored()
        try:
            return self.replace(
                source_patterns=tuple(literal_pattern(text) for text in self.target_patterns),
                target_patterns=self.source_patterns,
                operations=tuple(op.inverse() for op in reversed(self.operations)),
                optional=False,
                origin=self,
            )
        except (NotInvertible, RuleError) as error:
            raise self._refuse_inverse(error.seen) from error

    def summary(self) -> str:
        """Show patterns and ops."""
        ops = ", ".join(type(op).__name__ for op in self.operations)
        return f"{super().summary()} [{ops}]"
