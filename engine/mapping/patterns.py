"""Source patterns: a regular expression that is searched in a name, with stars and a name boundary at its end.

`*.` stands for `.*\\.` (greedy). A pattern whose text ends in a letter or digit ends at a name boundary, so
that `weight` does not match `weight_scale_inv`. Nothing is put in front. Where a target has a capturing group,
`\\1` in the source is that group (a rule turned round reads so).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.required import required_text
from weightloom.engine.mapping.syntax import Token, tokens
from weightloom.engine.mapping.templates import Template

# Rules come from third parties: a pattern that backtracks without end must not hang a load.
TIME_LIMIT = 2.0


@dataclass(frozen=True, slots=True)
class Span:
    """Where a pattern matched: the span in the name, captures by the number the target uses, star texts."""

    start: int
    end: int
    captures: tuple[tuple[int, str], ...]
    stars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourcePattern:
    """A compiled source pattern."""

    text: str
    compiled: regex.Pattern[str] = field(compare=False, repr=False)
    groups: tuple[tuple[int, int], ...]
    stars: tuple[int, ...]

    @property
    def required(self) -> str:
        """A text without digits that is in every name which it matches; "" if none is sure to be."""
        return required_text(self.text)

    def search(self, name: str) -> Span | None:
        """Find the leftmost match; raises RuleError when the pattern takes longer than the time limit."""
        try:
            found = self.compiled.search(name, timeout=TIME_LIMIT)
        except TimeoutError as error:
            raise self._too_long(name) from error
        return None if found is None else self._span(found)

    def spans(self, name: str) -> Iterator[Span]:
        """Find all matches that do not overlap, from left to right; raises as `search` does."""
        try:
            for found in self.compiled.finditer(name, timeout=TIME_LIMIT):
                yield self._span(found)
        except TimeoutError as error:
            raise self._too_long(name) from error

    def _too_long(self, name: str) -> RuleError:
        return RuleError(
            f"pattern {self.text!r} ran for more than {TIME_LIMIT:g} s on the name {name[:80]!r}",
            expected="a pattern without nested repetition such as (a+)+",
            hint="simplify the pattern; `rules lint` points at what backtracks",
            rule=self.text,
            tensor=name,
        )

    def _span(self, found: regex.Match[str]) -> Span:
        captures = tuple((number, found.group(actual) or "") for number, actual in self.groups)
        return Span(found.start(), found.end(), captures, tuple(found.group(n) or "" for n in self.stars))


def leftmost(patterns: Sequence[SourcePattern], name: str) -> tuple[int, Span] | None:
    """Give (index, span) of the pattern that wins: leftmost, then longest text, then list order."""
    best: tuple[int, Span] | None = None
    for index, pattern in enumerate(patterns):
        span = pattern.search(name)
        if span is None:
            continue
        if best is None or (span.start, -len(pattern.text)) < (best[1].start, -len(patterns[best[0]].text)):
            best = (index, span)
    return best


def compile_source(text: str, target_groups: Mapping[int, str], anchored: bool) -> SourcePattern:
    """Compile a source pattern; `target_groups` are the groups that its `\\k` stand for.

    Raises RuleError for a pattern that is not one, or a `\\k` that no group answers.
    """
    emitter = _Emitter(text, target_groups)
    body = "".join(emitter.pieces())
    if _branches(emitter.parts):
        body = f"(?:{body})"
    if anchored and not body.startswith("^"):
        body = "^" + body
    if text and text[-1].isascii() and text[-1].isalnum() and not emitter.ends_in_reference:
        body += r"(?!\w)"
    try:
        compiled = regex.compile(body)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise RuleError(
            f"source pattern {text!r} is not a regular expression: {error}",
            expected="a regular expression, with `*.` for any components and an escaped dot for a dot",
            field="source_patterns",
            rule=text,
        ) from error
    return SourcePattern(text, compiled, tuple(sorted(emitter.groups.items())), tuple(emitter.stars))


def _branches(parts: tuple[Token, ...]) -> bool:
    """Say whether an alternation stands outside all parentheses."""
    depth = 0
    for part in parts:
        depth += part.kind in ("group", "open", "look")
        depth -= part.kind == "close"
        if part.kind == "alt" and depth == 0:
            return True
    return False


class _Emitter:
    """Rewrites the tokens of one source pattern into a regular expression, counting groups as it goes."""

    def __init__(self, text: str, target_groups: Mapping[int, str]) -> None:
        self.text = text
        self.parts = tokens(text)
        self.own = sum(part.kind == "group" for part in self.parts)
        self.target_groups = target_groups
        self.actual = 0
        self.groups: dict[int, int] = {}
        self.stars: list[int] = []
        if self.own and target_groups:
            raise RuleError(
                f"source pattern {text!r} and its target both have capturing groups",
                expected="groups on one side, \\1 to \\9 on the other",
                field="source_patterns",
                rule=text,
            )

    @property
    def ends_in_reference(self) -> bool:
        """Say whether the text's last character belongs to a `\\k`, which stands for a group."""
        return bool(self.parts) and self.parts[-1].kind == "ref"

    def pieces(self) -> Iterator[str]:
        seen = 0
        for token in self.parts:
            if token.kind == "group":
                seen += 1
                self.actual += 1
                self.groups[seen] = self.actual
                yield "("
            elif token.kind == "star":
                self.actual += 1
                self.stars.append(self.actual)
                yield r"(.*)\."
            elif token.kind == "ref":
                yield self._reference(int(token.text[1]))
            else:
                yield token.text

    def _reference(self, number: int) -> str:
        """A group of the target the first time, a back-reference to it (or to an own group) after that."""
        if number in self.groups:
            return rf"(?:\{self.groups[number]})"
        if number not in self.target_groups:
            raise RuleError(
                f"source pattern {self.text!r}: \\{number} has no group",
                expected=f"group {number} in the pattern before it, or in the target pattern",
                field="source_patterns",
                rule=self.text,
            )
        group = self.target_groups[number]
        self.actual += 1
        self.groups[number] = self.actual
        self.actual += sum(part.kind == "group" for part in tokens(group)) - 1
        return group


def literal_pattern(text: str) -> str:
    """Escape the bare dots of a target's text, so that as a source it matches what the target writes."""
    return "".join(_escaped(part) for part in _outside_groups(tokens(text)))


def _outside_groups(parts: tuple[Token, ...]) -> Iterator[Token]:
    depth = 0
    for part in parts:
        depth += part.kind in ("group", "open", "look")
        yield part if depth == 0 or part.kind != "any" else Token("literal", ".", ".", part.at)
        depth -= part.kind == "close"


def _escaped(part: Token) -> str:
    return r"\." if part.kind == "any" else part.text


def check_holes(template: Template, sources: Sequence[SourcePattern]) -> None:
    """Refuse a target that needs a capture or a star which a source does not give."""
    check_references(template, sources)
    for source in sources:
        if template.stars > len(source.stars):
            raise RuleError(
                f"target {template.text!r} has more stars than source {source.text!r}",
                expected="a star in each source for each star in the target",
                field="target_patterns",
                rule=source.text,
            )


def check_references(template: Template, sources: Sequence[SourcePattern]) -> None:
    """Refuse a target that needs a capture which a source does not give."""
    for source in sources:
        lacking = sorted(set(template.refs) - {number for number, _ in source.groups})
        if lacking:
            raise RuleError(
                f"target pattern {template.text!r} uses \\{lacking[0]}, which source {source.text!r} does not capture",
                expected=f"{lacking[0]} capturing groups in the source",
                field="target_patterns",
                rule=source.text,
            )
