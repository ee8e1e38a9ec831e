"""Whether a value from outside is a number to compute with."""

from __future__ import annotations

import sys
from typing import TypeGuard


def is_finite(value: object) -> TypeGuard[int | float]:
    """Say whether it is an int or a float, no bool, that a float can hold; not NaN or an infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max
