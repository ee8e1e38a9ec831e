"""Short rule files for tests."""

from __future__ import annotations

from textwrap import dedent, indent

from weightloom.rules.document import RuleFile
from weightloom.rules.parse import parse_rules
from weightloom.rules.problems import RuleFileError


def with_rules(rules: str) -> str:
    """Give a file of one layout with these rules; the first one's dash is at line 6, column 7."""
    head = "schema: 1\nfamily: a\nlayouts:\n  hf:\n    rules:\n"
    return head + indent(dedent(rules).strip("\n"), " " * 6) + "\n"


def read(text: str) -> RuleFile:
    """Read a file's text under the name `a.yaml`."""
    return parse_rules(text.encode(), "a.yaml")


def said_of(text: str) -> list[str]:
    """Give all problems of a file's text, each as `line:column: what was seen`; none is an empty list."""
    try:
        read(text)
    except RuleFileError as error:
        return [f"{p.mark.line}:{p.mark.column}: {p.seen}" for p in error.problems]
    return []
