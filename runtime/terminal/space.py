"""Whether a disk has room, asked before work is begun."""

from __future__ import annotations

import shutil
from pathlib import Path

from weightloom.engine.errors import StorageError
from weightloom.engine.os_errors import storage_error
from weightloom.runtime.terminal.text import size


def need_space(folder: Path, nbytes: int) -> None:
    """Raise StorageError when the directory's disk has less than `nbytes` free, or it cannot be looked at."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise storage_error("look at", folder, error) from error
    if free < nbytes:
        raise StorageError(
            f"{size(free)} are free on the disk",
            expected=f"{size(nbytes)}",
            hint="free some space, or choose a place on another disk (--workdir)",
            file=folder,
        )
