"""Outcome: what a command has to say, before anything is printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FINE = 0
AT_FAULT = 1
BUG = 70
INTERRUPTED = 130
TERMINATED = 143


@dataclass(frozen=True, slots=True)
class Outcome:
    """An exit code, the answer as JSON values and as text; `remarks` are left out when quiet is asked for.

    `complaint` is for the error stream. `data` has no "schema" of its own: printing adds it, and prints
    nothing for no data.
    """

    code: int
    data: Mapping[str, Any]
    text: str = ""
    remarks: str = ""
    complaint: str = ""
