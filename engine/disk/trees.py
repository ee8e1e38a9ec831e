"""Whole directory trees: remove, sync, and carry into another. Links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from weightloom.engine.disk.files import Files
from weightloom.engine.errors import StorageError

_OWNER = stat.S_IRWXU


def remove_tree(root: Path, files: Files) -> None:
    """Remove `root` and all below it, read-only directories too. Raises StorageError."""
    folders = [root]
    for folder in folders:  # grows while it is walked; no recursion, so no depth is too deep
        _make_removable(folder, files)
        for name in files.names(folder):
            if _is_directory(folder / name, files):
                folders.append(folder / name)
            else:
                files.unlink(folder / name)
    for folder in reversed(folders):
        files.remove_directory(folder)


def _make_removable(folder: Path, files: Files) -> None:
    status = files.status(folder)
    if status is not None and status.st_mode & _OWNER != _OWNER:
        files.set_mode(folder, stat.S_IMODE(status.st_mode) | _OWNER)


def sync_tree(root: Path, files: Files) -> None:
    """Put every file and directory of a tree on the device. Raises StorageError."""
    folders = [root]
    for folder in folders:
        for name in files.names(folder):
            status = files.status(folder / name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                folders.append(folder / name)
            elif status is not None and stat.S_ISREG(status.st_mode):
                _sync_file(folder / name, files)
    for folder in reversed(folders):
        files.sync_directory(folder)


def carry_over(old: Path, new: Path, ours: Collection[str], files: Files) -> None:
    """Put into `new` what `old` holds, save the paths in `ours` and those that `new` already has.

    Files are hard-linked where that can be, else copied; directories are made anew with the old one's
    attributes. `ours` are paths relative to `old`. All that is made is synced. Raises StorageError.
    """
    skipped = frozenset(PurePosixPath(name) for name in ours)
    folders = [PurePosixPath()]
    for folder in folders:
        for name in files.names(old / folder):
            path = folder / name
            if path not in skipped and _carry(old / path, new / path, files):
                folders.append(path)
    for folder in reversed(folders):
        if folder.parts:
            files.copy_attributes(old / folder, new / folder)
        files.sync_directory(new / folder)


def _carry(source: Path, target: Path, files: Files) -> bool:
    """Carry one entry; True for a directory whose entries are to follow."""
    there = files.status(target)
    if _is_directory(source, files):
        if os.path.ismount(source):
            raise StorageError(
                "a mount point inside the target cannot be carried over",
                hint="unmount it, or save into a new directory",
                file=source,
            )
        if there is None:
            files.make_directory(target)
        return there is None or stat.S_ISDIR(there.st_mode)
    if there is None:
        _carry_file(source, target, files)
    return False


def _carry_file(source: Path, target: Path, files: Files) -> None:
    status = files.status(source)
    if status is None:
        return
    if stat.S_ISLNK(status.st_mode):
        files.copy_symlink(source, target)
    elif not files.link(source, target):
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(
                "neither a file nor a link: it cannot be carried over",
                hint="move it away, or save into a new directory",
                file=source,
            )
        copy_file(source, target, files)


def copy_file(source: Path, target: Path, files: Files) -> None:
    """Copy a regular file with its attributes, synced. Raises StorageError; `target` must not exist."""
    reader = files.open_to_read(source)
    try:
        writer = files.create(target)
        try:
            offset = 0
            while data := files.read_at(reader, offset):
                files.write_at(writer, data, offset)
                offset += len(data)
            files.copy_attributes(source, target)
            files.sync(writer)
        finally:
            files.close(writer)
    finally:
        files.close(reader)


def _sync_file(path: Path, files: Files) -> None:
    file = files.open_to_read(path)
    try:
        files.sync(file)
    finally:
        files.close(file)


def _is_directory(path: Path, files: Files) -> bool:
    status = files.status(path)
    return status is not None and stat.S_ISDIR(status.st_mode)
