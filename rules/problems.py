"""What is wrong with a rule file: every problem is collected, with its place, and raised once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from weightloom.engine.errors import RuleError

MAX_SHOWN = 50


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a text; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `code` is what the linter calls it."""

    file: str
    mark: Mark
    code: str
    seen: str
    expected: str | None = None
    hint: str | None = None
    field: str | None = None

    @property
    def place(self) -> str:
        """File, line and column, as editors read them."""
        return f"{self.file}:{self.mark.line}:{self.mark.column}"

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.seen}"]
        lines += [f"  expected: {self.expected}"] if self.expected else []
        lines += [f"  to do: {self.hint}"] if self.hint else []
        return "\n".join(lines)


class RuleFileError(RuleError):
    """All problems of one rule file; the attributes are the first one's, `problems` has every one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.mark))
        first = self.problems[0]
        super().__init__(first.seen, expected=first.expected, hint=first.hint, file=first.place, field=first.field)

    def _text(self) -> str:
        lines = [str(problem) for problem in self.problems[:MAX_SHOWN]]
        rest = len(self.problems) - MAX_SHOWN
        return "\n".join(lines + ([f"and {rest} more problems"] if rest > 0 else []))


@dataclass(slots=True)
class Problems:
    """Collects what is wrong while one file is read."""

    file: str
    found: list[Problem] = field(default_factory=list)

    def add(
        self,
        mark: Mark,
        seen: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
        code: str = "WL002",
        field: str | None = None,
    ) -> None:
        """Note a problem and go on."""
        self.found.append(Problem(self.file, mark, code, seen, expected, hint, field))

    def stop(self, mark: Mark, seen: str, *, expected: str | None = None, hint: str | None = None) -> RuleFileError:
        """Note a problem after which the text cannot be read further; gives the error to raise."""
        self.add(mark, seen, expected=expected, hint=hint, code="WL001")
        return RuleFileError(self.found)

    def check(self) -> None:
        """Raise RuleFileError if there is any problem."""
        if self.found:
            raise RuleFileError(self.found)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Give a hint that names the nearest known word, or None when nothing is near."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else None
