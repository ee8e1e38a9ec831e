"""Renames with arithmetic on indices."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from weightloom.engine.errors import RuleError
from weightloom.engine.patterns import SourcePattern, Span, compile_source, literal_pattern
from weightloom.engine.renaming import Renaming
from weightloom.engine.templates import Template, parse_template

_MOST_FORMS = 9
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
    whose number is not of the form (or would be negative) is not matched. Raises RuleError when a target's
    variable is not in the source.
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
        """Let the forms be the only holes: a number is worked out, other captures have no place here."""
        most = max(len(self._source_forms), len(self._target_forms))
        template, source = self.templates[0], self.sources[0]
        extra = len(source.groups) != len(self._source_forms) or len(template.refs) != len(self._target_forms)
        if extra or most > _MOST_FORMS or source.stars or template.stars or template.groups:
            raise RuleError(
                f"index map {self.summary()} has groups, references, stars, or more than {_MOST_FORMS} numbers",
                expected="text and forms such as {2i+1}; (?:...) for alternatives",
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
    def templates(self) -> tuple[Template, ...]:
        """The target with a numbered hole for each form."""
        count = itertools.count(1)
        return (parse_template(_FORM.sub(lambda _: f"\\{next(count)}", self.target_patterns[0])),)

    @cached_property
    def sources(self) -> tuple[SourcePattern, ...]:
        """The source with `(\\d+)` for each form."""
        text = _FORM.sub(lambda _: r"(\d+)", self.source_patterns[0])
        return (compile_source(text, {}, self.templates[0].anchored),)

    def match(self, name: str) -> tuple[int, Span] | None:
        """Find the first place whose numbers are of the wanted forms; captures are the target's numbers."""
        for found in self.sources[0].spans(name):
            texts = [text for _, text in found.captures]
            if any(len(text) > _MOST_DIGITS for text in texts):
                continue
            variables = self._solve(tuple(map(int, texts)))
            if variables is not None:
                numbers = [form.value(variables[form.variable]) for form in self._target_forms]
                if all(number >= 0 for number in numbers):
                    captures = tuple((i + 1, str(number)) for i, number in enumerate(numbers))
                    return 0, Span(found.start, found.end, captures, ())
        return None

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
