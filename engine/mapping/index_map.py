"""Renames with arithmetic on indices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.patterns import SourcePattern, Span, compile_source, literal_pattern
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.syntax import group_end, joined, tokens
from weightloom.engine.mapping.templates import Template, parse_template

_MOST_HOLES = 9
# No index is longer, and Python refuses to read numbers of thousands of digits.
_MOST_DIGITS = 18
_FORM = re.compile(r"\{\s*(?:(\d+)\s*\*?\s*)?([a-z])\s*(?:([+-])\s*(\d+)\s*)?\}")


@dataclass(frozen=True, slots=True)
class _Linear:
    """`a * variable + b`, as `{2i+1}` spells it."""

    factor: int
    variable: str
    shift: int

    def solve(self, number: int) -> int | None:
        rest = number - self.shift
        return rest // self.factor if rest >= 0 and rest % self.factor == 0 else None

    def value(self, variable: int) -> int:
        return self.factor * variable + self.shift


def _forms(text: str) -> tuple[_Linear, ...]:
    return tuple(
        _Linear(int(a or 1), name, int(b or 0) * (-1 if sign == "-" else 1)) for a, name, sign, b in _FORM.findall(text)
    )


@dataclass(frozen=True, init=False)
class IndexMap(Renaming):
    """A rename with arithmetic on indices: `layers\\.{2i+1}\\.mixer` -> `layers.{i}.mlp`.

    `{a*i+b}` in a source matches a number of that form and gives `i`; in a target it writes the number. A name
    whose number is not of the form (or would be negative) is not matched. Captures may stand beside the forms, and
    `\\1` counts captures alone. Raises RuleError when a target's variable is not in the source.
    """

    kind: ClassVar[str] = "index"

    def _check(self) -> None:
        if len(self.source_patterns) != 1 or len(self.target_patterns) != 1:
            raise RuleError("an index map of several names", expected="one source, one target", field="target")
        self._check_holes()
        unknown = {f.variable for f in self._target_forms} - {f.variable for f in self._source_forms}
        if unknown or not self._source_forms or any(f.factor == 0 for f in self._source_forms):
            raise RuleError(
                f"index map {self.summary()}",
                expected="each variable of the target in the source, as in layers\\.{2i} -> layers.{i}",
                field="target_patterns",
            )

    def _check_holes(self) -> None:
        """Let there be a number for each hole, and no star: captures keep theirs, forms take those that are left."""
        if max(len(self._source_forms), len(self._target_forms)) > len(self._free):
            raise self._wrong(f"more than {_MOST_HOLES} numbers and captures")
        template, source = self.templates[0], self.sources[0]
        if source.stars or template.stars:
            raise self._wrong("stars")
        known = {number for number, _ in source.groups} - set(self._free)
        lacking = set(template.refs) - known - set(self._free[: len(self._target_forms)])
        if lacking:
            raise self._wrong(f"no capture \\{min(lacking)} in its source")

    def _wrong(self, what: str) -> RuleError:
        return RuleError(
            f"index map {self.summary()} has {what}",
            expected=f"text, captures outside forms, and forms such as {{2i+1}}, {_MOST_HOLES} in all",
            hint="use WeightRenaming for what needs no arithmetic",
            field="source_patterns",
        )

    @cached_property
    def _source_forms(self) -> tuple[_Linear, ...]:
        return _forms(self.source_patterns[0])

    @cached_property
    def _target_forms(self) -> tuple[_Linear, ...]:
        return _forms(self.target_patterns[0])

    @cached_property
    def _free(self) -> tuple[int, ...]:
        """The hole numbers that no capture and no reference has; forms take them in order."""
        taken = _numbers(self.source_patterns[0]) | _numbers(self.target_patterns[0])
        return tuple(number for number in range(1, _MOST_HOLES + 1) if number not in taken)

    def _with_holes(self, text: str) -> str:
        """Write a numbered hole for each form."""
        free = iter(self._free)
        return _FORM.sub(lambda _: f"\\{next(free)}", text)

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The target with a numbered hole for each form."""
        return (parse_template(self._with_holes(self.target_patterns[0])),)

    @cached_property
    def sources(self) -> tuple[SourcePattern, ...]:
        """The source with `(\\d+)` for each form."""
        template = self.templates[0]
        text, own = _own_groups(self._with_holes(self.source_patterns[0]))
        if own and template.groups:
            raise self._wrong("captures on both sides")
        if any(part.kind == "ref" for group in own.values() for part in tokens(group)):
            raise self._wrong("a form or a reference inside a capture")
        digits = dict.fromkeys(self._free[: len(self._source_forms)], r"(\d+)")
        return (compile_source(text, {**own, **dict(template.groups), **digits}, template.anchored),)

    def match(self, name: str) -> tuple[int, Span] | None:
        """Find the first place whose numbers are of the wanted forms; captures are the target's numbers."""
        holes = self._free[: len(self._source_forms)]
        for found in self.sources[0].spans(name):
            captures = dict(found.captures)
            texts = [captures.pop(hole) for hole in holes]
            numbers = self._numbers_of(texts)
            if numbers is not None:
                filled = captures | dict(zip(self._free, map(str, numbers), strict=False))
                return 0, Span(found.start, found.end, tuple(sorted(filled.items())), ())
        return None

    def _numbers_of(self, texts: Sequence[str]) -> list[int] | None:
        """Give the target's numbers, or None where the source's are not of their forms."""
        if any(len(text) > _MOST_DIGITS for text in texts):
            return None
        variables = self._solve(tuple(map(int, texts)))
        if variables is None:
            return None
        numbers = [form.value(variables[form.variable]) for form in self._target_forms]
        return numbers if all(number >= 0 for number in numbers) else None

    def _solve(self, numbers: tuple[int, ...]) -> dict[str, int] | None:
        variables: dict[str, int] = {}
        for form, number in zip(self._source_forms, numbers, strict=True):
            solved = form.solve(number)
            if solved is None or variables.setdefault(form.variable, solved) != solved:
                return None
        return variables

    def inverse(self) -> IndexMap:
        """Swap source and target."""
        if self.origin is not None:
            return self._restored()
        lost = {f.variable for f in self._source_forms} - {f.variable for f in self._target_forms}
        if lost:
            raise self._refuse_inverse(f"the target does not say {', '.join(sorted(lost))}")
        try:
            return self.replace(
                source_patterns=(_escape_outside_forms(self.target_patterns[0]),),
                target_patterns=self.source_patterns,
                origin=self,
            )
        except RuleError as error:
            raise self._refuse_inverse(error.seen) from error


def _escape_outside_forms(text: str) -> str:
    pieces = re.split(r"(\{[^{}]*\})", text)
    return "".join(p if p.startswith("{") else literal_pattern(p) for p in pieces)


def _numbers(text: str) -> set[int]:
    """Give the numbers of the captures and references in a pattern with forms."""
    parts = tokens(_FORM.sub("0", text))
    groups = sum(part.kind == "group" for part in parts)
    return {*range(1, groups + 1), *(int(part.text[1]) for part in parts if part.kind == "ref")}


def _own_groups(text: str) -> tuple[str, dict[int, str]]:
    """Write `\\k` for each capturing group, and give what it stood for."""
    parts, pieces, own = tokens(text), [], {}
    at = number = 0
    while at < len(parts):
        end, piece = at, parts[at].text
        if parts[at].kind == "group":
            end = group_end(parts, at)
            inside = joined(parts[at : end + 1])
            own[number + 1], piece = inside, f"\\{number + 1}"
            number += sum(part.kind == "group" for part in parts[at:end])
        pieces.append(piece)
        at = end + 1
    return "".join(pieces), own
