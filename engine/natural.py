"""The natural order of names: numbers in them by value."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sort key; a number is compared as text of its length, since a name may hold one of any length."""
    parts = _NUMBER.split(name)
    return tuple(
        (len(part.lstrip("0")) + 1, part.lstrip("0")) if at % 2 else (0, part) for at, part in enumerate(parts)
    )
