"""How many threads read."""

from __future__ import annotations

import os

from weightloom.engine.errors import UsageError

VARIABLE = "WEIGHTLOOM_THREADS"
# More gain little where memory is filled by the processor itself; a device that fetches by itself keeps more busy.
HOST, DEVICE = 4, 16


def thread_count(threads: int | None, usual: int = HOST) -> int:
    """Give how many threads read: as asked, else WEIGHTLOOM_THREADS, else `usual`: reading waits more than it computes.

    One means that nothing is read on another thread than MLX's own. Raises UsageError for no whole number from 1 on.
    """
    wanted = threads if threads is not None else _from_environment() or usual
    if wanted < 1:
        raise UsageError(f"{wanted} threads", expected="one at least", field="threads")
    return wanted


def _from_environment() -> int | None:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(f"{VARIABLE} is {text!r}", expected="a whole number from 1 on", field=VARIABLE)
    return int(text)
