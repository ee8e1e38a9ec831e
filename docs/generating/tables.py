"""Tables in Markdown, and text that is put into pages as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table; without rows, nothing."""
    found = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join((f"| {' | '.join(head)} |", "|" + "---|" * len(head), *found)) if found else ""


def plain(text: str) -> str:
    """Keep marks as they are, but for what stands in backticks."""
    parts = enumerate(text.split("`"))
    return "`".join(part if place % 2 else re.sub(r"[\\*_<>\[\]]", r"\\\g<0>", part) for place, part in parts)


def cell(text: str) -> str:
    """Make a text one line that no bar cuts."""
    return plain(" ".join(text.split())).replace("|", "\\|")


def sentence(text: str) -> str:
    """Give the first sentence or paragraph of a docstring as a cell's text."""
    return cell(text.strip().partition("\n\n")[0])
