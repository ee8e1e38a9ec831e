"""The linter: what can be found wrong in a rule file from the file alone.

    WL001  not YAML, or YAML that readers disagree on        WL105  two converters claim one name
    WL002  not the form of a rule file                       WL106  a rename writes what a converter makes
    WL003  a rule or op that the engine refuses              WL107  a rename behind the converter that it feeds
    WL101  an unescaped dot                                  WL108  a pattern that may backtrack without end
    WL102  a pattern that never matches                      WL109  ops that cannot be lowered
    WL103  a group that is used but not captured             WL110  a rule without an inverse
    WL104  a rule whose names an earlier one has             WL111  `extends` that leads nowhere

Rules that a layout extends count as earlier ones. Files with problems up to WL103 are not read further: the other
checks need rules that can be made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.errors import WeightloomError
from weightloom.rules.document import Layout, RuleFile
from weightloom.rules.extending import Find, layout_parts
from weightloom.rules.linting.layout import Complaint, layout_complaints
from weightloom.rules.lookup import registry
from weightloom.rules.op_table import Ops, default_ops
from weightloom.rules.parse import parse_rules, read_bytes
from weightloom.rules.problems import Mark, Problem, RuleFileError


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing found in a rule file; line and column count from 1."""

    file: str
    line: int
    column: int
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.code} {self.message}"


def lint_rules(path: str | os.PathLike[str], ops: Ops = default_ops, find: Find = registry.family) -> list[Finding]:
    """List what is wrong with a rule file, in the order of its lines; raises StorageError if it cannot be read.

    `find` gives the file of a family that this one extends.
    """
    try:
        file = parse_rules(read_bytes(Path(path)), str(path), ops)
    except RuleFileError as error:
        return [_from_problem(problem) for problem in error.problems]
    return lint_file(file, find)


def lint_file(file: RuleFile, find: Find = registry.family) -> list[Finding]:
    """List what is wrong with a rule file that was read."""
    found = (complaint for layout in file.layouts for complaint in _of_layout(file, layout, find))
    return sorted({Finding(file.file, mark.line, mark.column, code, message) for mark, code, message in found})


def _of_layout(file: RuleFile, layout: Layout, find: Find) -> Iterator[Complaint]:
    try:
        *above, _ = layout_parts(file, layout.name, find)
    except WeightloomError as error:
        above = []
        reference = layout.extends or file.head.extends
        expected = f"; expected: {error.expected}" if error.expected else ""
        yield reference.at if reference else Mark(1, 1), "WL111", error.seen + expected
    yield from layout_complaints(layout.items, tuple(item for each in above for item in each.items))


def _from_problem(problem: Problem) -> Finding:
    said = [problem.seen]
    said += [f"expected: {problem.expected}"] if problem.expected else []
    said += [problem.hint] if problem.hint else []
    return Finding(problem.file, problem.mark.line, problem.mark.column, problem.code, "; ".join(said))
