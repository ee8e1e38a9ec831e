"""Write a text file whole or not at all, and never over another unasked."""

from __future__ import annotations

import os
from pathlib import Path

from weightloom.engine.errors import UsageError
from weightloom.engine.os_errors import storage_error


def write_text(target: str | Path, text: str, overwrite: bool) -> None:
    """Write a file beside its place and move it there; raises UsageError for one that is there, StorageError."""
    path = Path(target)
    if path.exists() and not overwrite:
        raise UsageError(
            f"{path} is there already",
            expected="a file that is not there yet",
            hint="say --overwrite to replace it, or choose another name",
            file=path,
        )
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise storage_error("write", path, error) from error
