"""A choice of rules, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.terminal.text import aligned


def choice_json(choice: Choice) -> dict[str, Any]:
    """Give a choice as JSON values."""
    return {
        "identifier": choice.identifier,
        "decided_by": choice.reason(),
        "layout": choice.layout,
        "layouts": list(choice.known),
        "rule_files": list(choice.files()),
    }


def choice_lines(choice: Choice) -> Iterator[str]:
    """Give a choice as lines: why, layout, files."""
    rows = [("decided by", choice.reason()), ("layout", choice.layout)]
    yield from aligned([*rows, *(("rules", file) for file in choice.files())])
