"""The bytes of a small file beside the weights: all of them, none where there is no file, or an error that says why."""

from __future__ import annotations

import stat
from pathlib import Path

from weightloom.engine.errors import CheckpointError
from weightloom.engine.os_errors import storage_error


def read_side_bytes(path: Path) -> bytes | None:
    """Read a file; None where there is nothing by that name.

    Raises CheckpointError for a link to nothing, which an incomplete download leaves, and for a pipe or a device,
    which might never end; StorageError where reading fails.
    """
    try:
        kind = path.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise CheckpointError("not a regular file", expected="a file, or none", file=path)
        return path.read_bytes()
    except FileNotFoundError as error:
        if path.is_symlink():
            raise _dangling(path) from error
        return None
    except OSError as error:
        raise storage_error("read", path, error) from error


def _dangling(path: Path) -> CheckpointError:
    return CheckpointError(
        "a symbolic link to a file that is not there",
        expected="a file, or none",
        hint="an incomplete download leaves such links: download it again",
        file=path,
    )
