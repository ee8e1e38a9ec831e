"""Rules that say what becomes of a tensor without changing it: drop it, tie it, leave it out, keep its dtype."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.patterns import SourcePattern, check_holes, compile_source, leftmost
from weightloom.engine.mapping.rule import Patterns, Rule, patterns
from weightloom.engine.mapping.templates import Template, parse_template


@dataclass(frozen=True, init=False)
class _Selecting(Rule):
    """A rule that picks names and leaves them as they are; it is its own inverse."""

    source_patterns: tuple[str, ...]

    def __init__(self, source_patterns: Patterns, **common: Any) -> None:
        self._set(source_patterns=patterns(source_patterns, "source_patterns"))
        self._set_common(common)
        _ = self.sources

    @cached_property
    def sources(self) -> tuple[SourcePattern, ...]:
        """The patterns, compiled."""
        return tuple(compile_source(text, {}, anchored=False) for text in self.source_patterns)

    def selects(self, name: str) -> bool:
        """Say whether a pattern matches the name (as the scope shows it)."""
        try:
            return leftmost(self.sources, name) is not None
        except RuleError as error:
            raise self.placed(error) from error

    def selects_parameter(self, name: str) -> bool:
        """Say whether a pattern matches a parameter's name, which may lack the prefix that the scope says."""
        split = ("", name) if self.scope is None else self.scope.strip(name, takes_unprefixed=True)
        return split is not None and self.selects(split[1])

    def inverse(self) -> _Selecting:
        """Give the rule itself: it changes nothing."""
        return self

    def summary(self) -> str:
        """Show the patterns."""
        return f"{self.kind} {', '.join(self.source_patterns)}"


@dataclass(frozen=True, init=False)
class Drop(_Selecting):
    """A tensor that the model may not use: left out of the parameters, kept for saving back.

    A name that leads to a parameter is never dropped. `why` says what the tensor is.
    """

    kind: ClassVar[str] = "drop"


@dataclass(frozen=True, init=False)
class Absent(_Selecting):
    """Parameters that this layout has no room for, by name: a vision tower in a text-only form.

    They are not written in it, and are no loss of its own: what they came from is kept beside it. `why` says why it
    lacks them.
    """

    kind: ClassVar[str] = "absent"


@dataclass(frozen=True, init=False)
class KeepDtype(_Selecting):
    """Parameters whose dtype stays as it is when all others are cast."""

    kind: ClassVar[str] = "keep_dtype"


@dataclass(frozen=True, init=False)
class Tie(Rule):
    """Two parameters, one tensor: `Tie('^lm_head\\.(weight|bias)', 'model.embed_tokens.\\1')`.

    `parameter` is a pattern on parameter names, `source` the template of the one whose tensor it shares. Where a
    checkpoint has both, they must be equal, which is checked before any parameter is bound.
    """

    kind: ClassVar[str] = "tie"

    parameter: str
    source: str

    def __init__(self, parameter: str, source: str, **common: Any) -> None:
        if not (isinstance(parameter, str) and isinstance(source, str)):
            raise RuleError("a tie needs two patterns", expected="parameter and source as text", field="tie")
        self._set(parameter=parameter, source=source)
        self._set_common(common)
        check_holes(self.template, [self.pattern])

    @cached_property
    def pattern(self) -> SourcePattern:
        """The parameter's pattern, compiled."""
        return compile_source(self.parameter, {}, anchored=False)

    @cached_property
    def template(self) -> Template:
        """The name of the other end."""
        return parse_template(self.source)

    def other_end(self, name: str) -> str | None:
        """Give the parameter that `name` shares its tensor with, or None."""
        span = self.pattern.search(name)
        if span is None:
            return None
        other = self.template.render(dict(span.captures), span.stars)
        return name[: span.start] + other + name[span.end :]

    def inverse(self) -> Tie:
        """Give the rule itself: a tie holds both ways."""
        return self

    def summary(self) -> str:
        """Show both ends."""
        return f"tie {self.parameter} to {self.source}"
