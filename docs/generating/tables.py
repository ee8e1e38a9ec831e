"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a table; without rows, nothing."""
    found = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join((f"| {' | '.join(head)} |", "|" + "---|" * len(head), *found)) if found else ""


def cell(text: str) -> str:
    """Make a text one line that no bar cuts."""
    return " ".join(text.split()).replace("|", "\\|")


def sentence(text: str) -> str:
    """Give the first sentence or paragraph of a docstring as a cell's text."""
    return cell(text.strip().partition("\n\n")[0])
