"""Patterns for the ending of a dotted name, as configs have them that are about modules."""

from __future__ import annotations

import regex

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.patterns import TIME_LIMIT


def is_ending(pattern: str, name: str) -> bool:
    """Say whether a regular expression matches a dotted name, or its ending after a dot.

    Raises RuleError for a text that is none, or one that takes longer than the time limit.
    """
    try:
        return regex.fullmatch(rf"(?:.*\.)?(?:{pattern})", name, timeout=TIME_LIMIT) is not None
    except (regex.error, TimeoutError, RecursionError, OverflowError) as error:
        raise RuleError(
            f"{pattern!r} is no usable pattern: {error}", expected="a name, or a regular expression", rule=pattern
        ) from error
