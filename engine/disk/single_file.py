"""Write one file in one step: built beside its place, synced, put in. A crash leaves the old one or the new one."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.disk.target import place_of
from weightloom.engine.errors import StorageError, UsageError


def check_ending(path: str | Path, *endings: str) -> None:
    """Raise UsageError for a file of another kind by its name: an overwrite must not hit weights or a config."""
    if Path(path).suffix not in endings:
        raise UsageError(
            f"a file named {Path(path).name!r}",
            expected=f"a name that ends in {endings[0]}",
            hint="name it so",
            file=path,
        )


def check_free(path: str | Path, *, overwrite: bool, files: Files = FILES) -> None:
    """Raise UsageError where something is that must not or cannot be replaced. Makes nothing."""
    target = place_of(path).target
    status = files.status(target)
    if status is None:
        return
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(
            "the target is not a file", expected="a file, or a name that is free", hint="choose another name", file=path
        )
    if not overwrite:
        raise UsageError(
            "the file is there already",
            expected="a name that is free",
            hint="choose another name, or replace the file with --overwrite",
            file=path,
        )


def write_single(path: str | Path, data: bytes, *, overwrite: bool = False, files: Files = FILES) -> None:
    """Put a file with this content in its place; one that is replaced leaves its permission bits.

    A path that is a symbolic link stays one: what it names is replaced. Raises as `check_free` does, and StorageError,
    with the old file whole, when the file system refuses.
    """
    check_free(path, overwrite=overwrite, files=files)
    place = place_of(path)
    try:
        files.write_file(place.temporary, data)
        old = files.status(place.target)
        if old is not None:
            files.set_mode(place.temporary, stat.S_IMODE(old.st_mode))
        # A link is refused where something has come to be in the meantime; a renaming is not.
        if overwrite or not files.link(place.temporary, place.target):
            files.rename(place.temporary, place.target)
        files.sync_directory(place.folder)
    finally:
        with suppress(StorageError):
            if files.status(place.temporary) is not None:
                files.unlink(place.temporary)
