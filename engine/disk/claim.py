"""Claim the place of a save: its parents are there and its lock is ours until the save ends."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weightloom.engine.disk.files import Files
from weightloom.engine.disk.target import Place
from weightloom.engine.errors import StorageError, UsageError


@contextmanager
def claimed(place: Place, files: Files) -> Iterator[None]:
    """Make the missing parents of the target and hold its lock; on an error, remove the parents again.

    Raises UsageError when another save holds the lock, StorageError when the file system refuses.
    """
    with _parents(place.folder, files), _locked(place, files):
        yield


@contextmanager
def _parents(folder: Path, files: Files) -> Iterator[None]:
    made: list[Path] = []
    try:
        for parent in _missing(folder, files):
            _make_parent(parent, made, files)
        yield
    except BaseException:
        for parent in reversed(made):
            with suppress(StorageError):
                files.remove_directory(parent)
        raise


def _missing(folder: Path, files: Files) -> list[Path]:
    """List the directories of a path that do not exist yet, outermost first."""
    missing: list[Path] = []
    while files.status(folder) is None:
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def _make_parent(parent: Path, made: list[Path], files: Files) -> None:
    try:
        files.make_directory(parent)
    except StorageError:
        # A save into a neighbour may have made it in between: then it is not ours to remove.
        status = files.status(parent)
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise
    else:
        made.append(parent)
        files.sync_directory(parent.parent)


@contextmanager
def _locked(place: Place, files: Files) -> Iterator[None]:
    lock = files.lock(place.lock)
    if lock is None:
        raise UsageError(
            "another save into this directory is under way",
            expected="one save into a directory at a time",
            hint="wait until it has ended, or choose another directory",
            file=place.target,
        )
    try:
        yield
    finally:
        # Not worth an error once the save is done: a lock file that stays is taken by the next run.
        with suppress(StorageError):
            files.unlink(place.lock)
        with suppress(StorageError):
            files.unlock(lock)
