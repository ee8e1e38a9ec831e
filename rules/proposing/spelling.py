"""Spelling: parts of names as patterns and as targets."""

from __future__ import annotations

import re
from collections.abc import Sequence

from weightloom.rules.proposing.templates import STAR


def source(parts: Sequence[str], *, first: bool, last: bool, collected: int = -1) -> str:
    """Write parts as a source pattern: `first` and `last` say whether the name begins or ends with them.

    The number at the place `collected` among the parts is a star that is collected; the others are captured.
    """
    text = "^" if first else r"\."
    for place, part in enumerate(parts):
        end = "" if place == len(parts) - 1 else r"\."
        if part == STAR and place == collected:
            text += "*."
        else:
            text += (r"(\d+)" if part == STAR else re.escape(part).replace(r"\-", "-")) + end
    return text if last else text + r"\."


def target(parts: Sequence[str], *, first: bool, last: bool) -> str:
    """Write parts as a target: the first number is `\\1`, the next `\\2`."""
    numbers = iter(range(1, len(parts) + 1))
    shown = [f"\\{next(numbers)}" if part == STAR else part for part in parts]
    return ("" if first else ".") + ".".join(shown) + ("" if last else ".")
