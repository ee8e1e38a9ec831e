"""Where a save goes: the target directory, the names beside it, and whether it may be replaced."""

from __future__ import annotations

import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.disk.files import Files
from weightloom.engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Place:
    """A target directory and the names that one run uses beside it. `target` has no symbolic link in it."""

    target: Path
    temporary: Path

    @property
    def folder(self) -> Path:
        """The directory that holds the target."""
        return self.target.parent

    @property
    def aside(self) -> Path:
        """Where the old directory waits, whole, while a swap takes two renames."""
        return self._beside("old")

    @property
    def lock(self) -> Path:
        """The lock file of the target's name."""
        return self._beside("lock")

    def is_temporary(self, name: str) -> bool:
        """Say whether a name in `folder` is that of a run's temporary directory for this target."""
        return re.fullmatch(rf"\.{re.escape(self.target.name)}\.weightloom-\d+-[0-9a-f]{{8}}", name) is not None

    def _beside(self, suffix: str) -> Path:
        return self.folder / f".{self.target.name}.weightloom-{suffix}"


def place_of(target: str | Path) -> Place:
    """Give the place of a target, links resolved. Raises UsageError for a path that cannot be one."""
    try:
        resolved = Path(os.path.realpath(target))
    except ValueError as error:
        raise UsageError(f"not a path: {str(target)!r}", hint="name a directory", file=repr(target)) from error
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    return Place(resolved, resolved.parent / f".{resolved.name}.weightloom-{mark}")


def is_filled(path: Path, files: Files) -> bool:
    """Say whether there is a directory with at least one entry."""
    status = files.status(path)
    return status is not None and stat.S_ISDIR(status.st_mode) and bool(files.names(path))


def check_target(place: Place, overwrite: bool, files: Files) -> None:
    """Raise UsageError when the target must not or cannot be replaced. Makes nothing."""
    status = files.status(place.target)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        raise UsageError(
            "the target is not a directory",
            expected="a directory, or a name that is free",
            hint="choose another name, or move the file away",
            file=place.target,
        )
    _check_can_be_renamed(place)
    if overwrite:
        return
    if is_filled(place.target, files):
        raise _not_empty(place, "the target directory is not empty")
    if files.status(place.aside) is not None:
        raise _not_empty(place, f"a save that was cut off left the target's content at {place.aside}")


def _not_empty(place: Place, seen: str) -> UsageError:
    return UsageError(
        seen,
        expected="an empty directory, or a name that is free",
        hint="choose another directory, or replace the checkpoint in it with --overwrite (overwrite=True): "
        "files that are not part of it stay",
        file=place.target,
    )


def _check_can_be_renamed(place: Place) -> None:
    if os.path.ismount(place.target):
        raise UsageError(
            "the target is a mount point, which cannot be replaced in one step",
            hint="save into a new directory inside it",
            file=place.target,
        )
    if _working_directory().is_relative_to(place.target):
        raise UsageError(
            "the target holds the working directory, which would be left in a removed directory",
            hint="run the save from outside the target, or choose another directory",
            file=place.target,
        )


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)
