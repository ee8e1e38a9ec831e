"""Published names where the reference implementation, saving a model, writes others than it reads.

It runs each rename backwards on every name, also on names that the rename never made. What is here are the names
of the files that its rules were written for.
"""

from __future__ import annotations

import re

# key -> what it writes, what is published
_WRITTEN: dict[str, tuple[tuple[str, str], ...]] = {}


def published_name(key: str, written: str) -> str:
    """Give the published name of a tensor that the reference implementation wrote."""
    name = written
    for pattern, replacement in _WRITTEN.get(key, ()):
        name = re.sub(pattern, replacement, name)
    return name
