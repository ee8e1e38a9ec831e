"""The linter: what can be found wrong in a rule file from the file alone.

    WL001  not YAML, or YAML that readers disagree on        WL105  two converters claim one name
    WL002  not the form of a rule file                       WL106  a rename writes what a converter makes
    WL003  a rule or op that the engine refuses              WL107  a rename behind the converter that it feeds
    WL101  an unescaped dot                                  WL108  a pattern that may backtrack without end
    WL102  a pattern that never matches                      WL109  ops that cannot be lowered
    WL103  a group that is used but not captured             WL110  a rule without an inverse
    WL104  a rule whose names an earlier one has

Files with problems up to WL103 are not read further: the other checks need rules that can be made.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from weightloom.rules.document import RuleFile
from weightloom.rules.lint_layout import layout_complaints
from weightloom.rules.op_table import Ops, default_ops
from weightloom.rules.parse import parse_rules, read_bytes
from weightloom.rules.problems import Problem, RuleFileError


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


def lint_rules(path: str | os.PathLike[str], ops: Ops = default_ops) -> list[Finding]:
    """List what is wrong with a rule file, in the order of its lines; raises StorageError if it cannot be read."""
    try:
        file = parse_rules(read_bytes(Path(path)), str(path), ops)
    except RuleFileError as error:
        return [_from_problem(problem) for problem in error.problems]
    return lint_file(file)


def lint_file(file: RuleFile) -> list[Finding]:
    """List what is wrong with a rule file that was read."""
    found = (complaint for layout in file.layouts for complaint in layout_complaints(layout))
    return sorted({Finding(file.file, mark.line, mark.column, code, message) for mark, code, message in found})


def _from_problem(problem: Problem) -> Finding:
    said = [problem.seen]
    said += [f"expected: {problem.expected}"] if problem.expected else []
    said += [problem.hint] if problem.hint else []
    return Finding(problem.file, problem.mark.line, problem.mark.column, problem.code, "; ".join(said))
