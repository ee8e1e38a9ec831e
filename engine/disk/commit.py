"""Replace a directory in one step: build beside it, sync, swap. A crash leaves the old one or the new one.

Names beside a target `model`, all of one run at a time, since the lock is held from the first to the last:

    .model.weightloom-lock              the lock; a crash leaves it and the next run takes it
    .model.weightloom-<pid>-<8 hex>     being built, or being removed: never of use to anyone but its run
    .model.weightloom-old               whole: the old directory between the two renames of a swap that the
                                        kernel cannot do in one step; put back when the target is missing
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from weightloom.engine.disk.claim import claimed
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.disk.target import Place, check_target, is_filled, place_of
from weightloom.engine.disk.trees import carry_over, remove_tree, sync_tree
from weightloom.engine.errors import StorageError


@contextmanager
def replacing_directory(
    target: str | Path,
    *,
    overwrite: bool,
    ours: Callable[[Path], Collection[str]],
    files: Files = FILES,
) -> Iterator[Path]:
    """Yield an empty directory; on a clean exit put it, synced, in the target's place in one step.

    On any error, and on an interrupt, the new directory is removed and the target is as it was. `ours` gives
    the files (relative paths) of an old target that belong to the save being replaced; everything else in
    the old target that the body did not write itself is carried over, and so are the old directory's
    permission bits. A target that is a symbolic link stays one: what it names is replaced. Missing parents
    are made.

    Raises UsageError, before anything is made, when the target is a file, a mount point, holds the working
    directory, or is not empty and `overwrite` is not given; and when another save into it is under way.
    Raises StorageError, naming the file, when the file system refuses anything.
    """
    place = place_of(target)
    check_target(place, overwrite, files)
    with claimed(place, files):
        _clear_leftovers(place, files)
        check_target(place, overwrite, files)
        replaced = ours(place.target) if is_filled(place.target, files) else ()
        try:
            _make_temporary(place, files)
            yield place.temporary
            _complete(place, replaced, files)
            _put_in_place(place, files)
        except BaseException as error:
            _abandon(place, error, files)
            raise
        _remove_replaced(place, files)


def _clear_leftovers(place: Place, files: Files) -> None:
    """Put a set-aside target back, and remove what runs that died have left."""
    _put_back(place, files)
    if files.status(place.aside) is not None:
        files.rename(place.aside, place.temporary)
    for name in files.names(place.folder):
        if place.is_temporary(name):
            remove_tree(place.folder / name, files)


def _put_back(place: Place, files: Files) -> None:
    if files.status(place.aside) is not None and not is_filled(place.target, files):
        files.rename(place.aside, place.target)
        files.sync_directory(place.folder)


def _make_temporary(place: Place, files: Files) -> None:
    files.make_directory(place.temporary)
    old = files.status(place.target)
    if old is not None:
        files.set_mode(place.temporary, stat.S_IMODE(old.st_mode) | stat.S_IRWXU)


def _complete(place: Place, replaced: Collection[str], files: Files) -> None:
    """Sync what the body wrote, and add what of the old directory stays."""
    sync_tree(place.temporary, files)
    old = files.status(place.target)
    if old is None:
        return
    carry_over(place.target, place.temporary, replaced, files)
    files.set_mode(place.temporary, stat.S_IMODE(old.st_mode))
    files.sync_directory(place.temporary)


def _put_in_place(place: Place, files: Files) -> None:
    if not is_filled(place.target, files):
        _rename_in(place, files)
    elif files.exchange(place.temporary, place.target):
        try:
            files.sync_directory(place.folder)
        except BaseException:
            files.exchange(place.temporary, place.target)
            raise
    else:
        files.rename(place.target, place.aside)
        _rename_in(place, files)


def _rename_in(place: Place, files: Files) -> None:
    files.rename(place.temporary, place.target)
    try:
        files.sync_directory(place.folder)
    except BaseException:
        files.rename(place.target, place.temporary)
        raise


def _abandon(place: Place, error: BaseException, files: Files) -> None:
    """Give the target back what it was and remove the rest; `error`, the reason, is what the caller sees."""
    try:
        _put_back(place, files)
        if files.status(place.temporary) is not None:
            remove_tree(place.temporary, files)
    except StorageError as problem:
        error.add_note(f"Cleaning up failed too, the next save into the directory does it: {problem}")


def _remove_replaced(place: Place, files: Files) -> None:
    try:
        if files.status(place.aside) is not None:
            # Under its own name it would be taken for a whole one after a crash half-way.
            files.rename(place.aside, place.temporary)
        if files.status(place.temporary) is not None:
            remove_tree(place.temporary, files)
    except StorageError as error:
        raise StorageError(
            f"the save is complete and in place, but what it replaced could not be removed: {error.seen}",
            hint=f"remove {place.temporary} (the next save into the directory does it too)",
            file=error.file,
        ) from error
