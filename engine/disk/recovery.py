"""Put back a checkpoint whose replacement was cut off between its two renames."""

from __future__ import annotations

import os
from pathlib import Path

from weightloom.engine.disk.claim import claimed
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.disk.target import place_of


def recover(path: str | Path, files: Files = FILES) -> bool:
    """Rename `.<name>.weightloom-old` beside `path` to `path` if nothing is there; say whether it was done.

    Where `path` is a symbolic link, what it names is meant, as in a save.

    Raises UsageError while a save holds the place's lock (then it is not a cut-off one), StorageError where the
    system refuses.
    """
    if os.path.exists(path):
        return False
    place = place_of(path)
    if not os.path.lexists(place.aside):
        return False
    with claimed(place, files):
        # Whoever had the lock before may have put it back.
        if files.status(place.aside) is not None and files.status(place.target) is None:
            files.rename(place.aside, place.target)
            files.sync_directory(place.folder)
    return os.path.exists(path)
