"""System calls whose odd answers have one meaning each on every platform. All raise OSError."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

_CANNOT_LINK = frozenset({errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.ENOSYS, errno.ENOTSUP})
_CANNOT_SYNC_DIRECTORY = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})


def write_some(descriptor: int, data: memoryview, offset: int) -> int:
    """Write at least one byte of `data` at `offset`; give how many."""
    done = os.pwrite(descriptor, data, offset)
    if done == 0:  # never on a healthy file, and a caller that goes on until all is written would not end
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return done


def sync(descriptor: int) -> None:
    """Put a file's content on the device."""
    # fsync on macOS stops at the drive's own cache.
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, full)
    except OSError:
        os.fsync(descriptor)


def sync_directory(descriptor: int) -> None:
    """Put a directory's entries on the device; nothing where the file system has no way to."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC_DIRECTORY:
            raise


def link(source: Path, target: Path) -> bool:
    """Make a hard link; False where the file system or a file's owner does not allow one."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in _CANNOT_LINK:
            return False
        raise
    return True


def take_lock(descriptor: int, path: Path) -> bool:
    """Lock the open lock file; False when another has it, or has just removed it from `path`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
