"""Renames: the part of a name that matched is replaced, once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from weightloom.engine.errors import NotInvertible, RuleError
from weightloom.engine.mapping.patterns import (
    SourcePattern,
    Span,
    check_holes,
    compile_source,
    leftmost,
    literal_pattern,
)
from weightloom.engine.mapping.rule import Patterns, Rule, patterns
from weightloom.engine.mapping.templates import Template, parse_template


@dataclass(frozen=True, init=False)
class Renaming(Rule):
    """A rule that maps a name to a name; the part of a name that matched is replaced, once."""

    source_patterns: tuple[str, ...]
    target_patterns: tuple[str, ...]

    def __init__(self, source_patterns: Patterns, target_patterns: Patterns, **common: Any) -> None:
        sources = patterns(source_patterns, "source_patterns")
        targets = patterns(target_patterns, "target_patterns")
        self._set(source_patterns=sources, target_patterns=targets)
        self._set_common(common)
        self._check()

    def _check(self) -> None:
        """Read every pattern now, so that a wrong one is an error where it is written."""
        for template in self.templates:
            check_holes(template, self.sources)

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The targets, read."""
        return tuple(parse_template(text) for text in self.target_patterns)

    @cached_property
    def sources(self) -> tuple[SourcePattern, ...]:
        """The sources, compiled."""
        return tuple(compile_source(text, *self._anchor(i)) for i, text in enumerate(self.source_patterns))

    def _anchor(self, index: int) -> tuple[dict[int, str], bool]:
        """What the target of source `index` gives it: groups that `\\k` stands for, and an anchor."""
        template = self.templates[min(index, len(self.templates) - 1)]
        return dict(template.groups), template.anchored

    def match(self, name: str) -> tuple[int, Span] | None:
        """Find which source pattern matches a name (as the scope shows it), and where."""
        try:
            return leftmost(self.sources, name)
        except RuleError as error:
            raise self.placed(error) from error

    def rewrite(self, name: str) -> str | None:
        """Rename a name (as the scope shows it); None where nothing matches."""
        found = self.match(name)
        if found is None:
            return None
        index, span = found
        return name[: span.start] + self.render(index, span) + name[span.end :]

    def render(self, index: int, span: Span) -> str:
        """Give the text that replaces what source `index` matched."""
        template = self.templates[min(index, len(self.templates) - 1)]
        return template.render(dict(span.captures), span.stars)

    def summary(self) -> str:
        """Show sources and targets."""
        return f"{', '.join(self.source_patterns)} -> {', '.join(self.target_patterns)}"

    def _restored(self) -> Self:
        """Give back the rule that this one is the inverse of, with what was changed since."""
        assert isinstance(self.origin, type(self))
        # What may be lacking is said of sources, which are the origin's own.
        shared = {f.name: getattr(self, f.name) for f in dataclasses.fields(Rule) if f.name != "optional"}
        return self.origin.replace(**{**shared, "origin": None})

    def _refuse_inverse(self, reason: str) -> NotInvertible:
        return NotInvertible(
            f"{type(self).__name__} {self.summary()} has no inverse: {reason}",
            expected="a rule whose target can be searched for and whose source can be written",
            hint="a checkpoint that was loaded still saves back, from its plan's record",
            rule=self.title(),
        )


@dataclass(frozen=True, init=False)
class WeightRenaming(Renaming):
    """Rename: one or more source patterns, one target.

    Raises RuleError for several targets, a target that is not text with holes, or a hole without a capture.
    """

    kind: ClassVar[str] = "rename"

    def _check(self) -> None:
        if len(self.target_patterns) != 1:
            raise RuleError(
                f"a rename with {len(self.target_patterns)} targets: {', '.join(self.target_patterns)}",
                expected="many sources, one target",
                hint="use RenameGroup for N names to N names, WeightConverter to split a tensor",
                field="target_patterns",
            )
        super()._check()

    def inverse(self) -> WeightRenaming:
        """Swap source and target; with several sources the first one's name is written."""
        if self.origin is not None:
            return self._restored()
        try:
            source = self.source_patterns[0]
            return self.replace(
                source_patterns=(literal_pattern(self.target_patterns[0]),),
                target_patterns=(source,),
                origin=self,
            )
        except RuleError as error:
            raise self._refuse_inverse(error.seen) from error
