"""Saves: a file's bytes now, and again whenever it was saved.

The file is looked at by name, a few times a second: no library is needed, and it works on network disks, where the
system tells nobody of a change. Editors that save by putting another file in its place are seen too.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from weightloom.engine.errors import StorageError, UsageError
from weightloom.engine.os_errors import storage_error
from weightloom.rules.parse import read_bytes

INTERVAL = 0.1
State = tuple[int, int, int]


def saves(path: Path, wait: Callable[[], None] = lambda: time.sleep(INTERVAL)) -> Iterator[bytes]:
    """Yield the bytes of a file at first, and after each save; `wait` passes the time between two looks.

    A file that is gone for a while is waited for, one that is being written until it rests. Of a file that is too long
    for rules no more is read than shows that. Raises StorageError for a file that cannot be read at first, UsageError
    for what is no file.
    """
    try:
        state: State | None = _state(path)
    except OSError as error:
        raise storage_error("read", path, error) from error
    if state is None:
        raise UsageError(f"{path} is not a file", expected="a rule file", hint="name the file itself", file=path)
    yield read_bytes(path)
    while True:
        wait()
        found = _rested(path, state, wait)
        if found is not None:
            state, text = found
            yield text


def _rested(path: Path, last: State | None, wait: Callable[[], None]) -> tuple[State, bytes] | None:
    """Give the file's state and bytes once two looks agree; None where it is as it was last, or no file is there."""
    try:
        seen = _state(path)
        if seen is None or seen == last:
            return None
        wait()
        return (seen, read_bytes(path)) if _state(path) == seen else None
    except (OSError, StorageError):
        return None


def _state(path: Path) -> State | None:
    """Give what changes with a save; None for what is no file: to read a pipe or a device may never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
