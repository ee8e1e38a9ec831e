"""What is wrong with a rule file, as values: file, line, column, and what an error says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from weightloom.engine.errors import WeightloomError
from weightloom.engine.planning.report import Incomplete, LoadReport, Mismatch
from weightloom.rules.document import RuleFile, RuleItem
from weightloom.rules.linting.lint import Finding
from weightloom.rules.problems import Mark, Problem, RuleFileError
from weightloom.rules.reading import MAX_TEXT

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where; line and column count from 1, and are 0 where no line is at fault.

    `code` is what the linter calls it, "" for what shows in planning alone.
    """

    file: str
    line: int
    column: int
    seen: str
    expected: str | None = None
    hint: str | None = None
    code: str = ""

    @property
    def place(self) -> str:
        """File, line and column, as editors read them."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        code = f"{self.code} " if self.code else ""
        lines = [f"{self.place}: {code}{self.seen}"]
        lines += [f"  expected: {self.expected}"] if self.expected else []
        lines += [f"  to do: {self.hint}"] if self.hint else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Give the facts as JSON values."""
        return asdict(self)


def faults_of(error: WeightloomError, file: str) -> Iterator[Fault]:
    """Give what an error says; of a rule file that cannot be read, each of its problems."""
    if isinstance(error, RuleFileError):
        yield from map(_of_problem, error.problems)
        return
    found = _PLACE.fullmatch(error.file or "")
    name, line, column = (found["file"], int(found["line"]), int(found["column"])) if found else (file, 0, 0)
    yield Fault(name, line, column, error.seen, error.expected, error.hint)


def of_planning(error: WeightloomError, file: str, items: tuple[RuleItem, ...]) -> Iterator[Fault]:
    """Give what an error in planning says, where the rule of the file stands that it names."""
    named = (item for item in items if error.rule is not None and _names(error.rule, item))
    item = next(named, None)
    if item is None or error.rule is None or _PLACE.fullmatch(error.file or ""):
        yield from faults_of(error, file)
        return
    mark = item.mark_of(error.rule)
    yield Fault(file, mark.line, mark.column, error.seen, error.expected, error.hint)


def _names(rule: str, item: RuleItem) -> bool:
    """Say whether an error's rule, a title or a pattern, is this one."""
    return rule in item.marks or f"({item.rule.place})" in rule


def of_finding(finding: Finding) -> Fault:
    """Give what the linter found."""
    return Fault(finding.file, finding.line, finding.column, finding.message, code=finding.code)


def of_conditions(file: RuleFile, items: tuple[RuleItem, ...], config: Mapping[str, Any]) -> Iterator[Fault]:
    """Give the rules whose condition or expressions the config cannot answer."""
    for item in items:
        try:
            if item.rule.applies(config, {}):
                item.rule.bound(config)
        except WeightloomError as error:
            mark = place_in(item, error)
            yield Fault(file.file, mark.line, mark.column, error.seen, error.expected, error.hint)


def place_in(item: RuleItem, error: WeightloomError) -> Mark:
    """Give where the text stands that an error names; else where the rule does."""
    named = [text for text in item.marks if 0 < len(text) <= MAX_TEXT and repr(text) in error.seen]
    return item.mark_of(max(named, key=len)) if named else item.at


def of_report(
    report: LoadReport, file: RuleFile, items: tuple[RuleItem, ...], config: Mapping[str, Any]
) -> Iterator[Fault]:
    """Give the rules of a file that a report blames, each once, with the first thing that does not fit."""
    blamed: dict[str, list[str]] = {}
    records: tuple[Mismatch | Incomplete, ...] = (*report.mismatched, *report.incomplete)
    for record in records:
        if record.rule is not None:
            blamed.setdefault(record.rule, []).append(str(record).removesuffix(f" [{record.rule}]"))
    for item in items:
        found = blamed.pop(item.rule.bound(config).title(), [])
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield Fault(file.file, item.at.line, item.at.column, found[0] + more)


def _of_problem(problem: Problem) -> Fault:
    mark = problem.mark
    return Fault(problem.file, mark.line, mark.column, problem.seen, problem.expected, problem.hint, problem.code)
