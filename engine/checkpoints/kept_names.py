"""The names in a file of kept tensors: those of tensors, and those of the record of the source that they are from."""

from __future__ import annotations

from collections.abc import Iterable

RECORD = "weightloom.record/"
CONFIG = f"{RECORD}config.json"
INDEX = f"{RECORD}index/"
HEADER = f"{RECORD}header/"
PASSED = f"{RECORD}passed/"


def kept_names(names: Iterable[str]) -> list[str]:
    """Give the names in such a file that are no record."""
    return [name for name in names if not name.startswith(RECORD)]
