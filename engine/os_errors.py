"""From the operating system's error numbers to StorageError: what was tried, on which file, what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from weightloom.engine.errors import StorageError

_FREE_SPACE = "free some space, or choose a place on another disk"
_MOUNTED = "choose a new directory inside it: a mount point or an image layer cannot be renamed"

# error number -> (what it means, what to do)
_MEANINGS: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("disk full", _FREE_SPACE),
    errno.EDQUOT: ("disk full: the quota is used up", _FREE_SPACE),
    errno.EFBIG: ("the file is larger than the file system or the limits allow", "ask for smaller shards"),
    errno.EACCES: ("permission denied", "check who owns it and its permissions, or choose another place"),
    errno.EPERM: ("permission denied", "check who owns it and its permissions, or choose another place"),
    errno.EROFS: ("permission denied: the file system is read-only", "choose a place that can be written"),
    errno.EBUSY: ("it is in use or a mount point", _MOUNTED),
    errno.EXDEV: ("it is on another file system", _MOUNTED),
    errno.ENOTDIR: ("a part of the path is a file, not a directory", "choose another path"),
    errno.ENAMETOOLONG: ("the name is too long for the file system", "choose a shorter name"),
    errno.ENOLCK: ("the file system has no file locks", "save to a local disk, then move the directory"),
    errno.EIO: ("the device reports an error", "check the disk: its content may be damaged"),
}


def storage_error(action: str, path: Path, error: OSError) -> StorageError:
    """Give the StorageError for `error`, met when trying to `action` (as in "write") `path`."""
    code = error.errno or 0
    text = error.strerror or os.strerror(code)
    meaning, hint = _MEANINGS.get(code, (text.lower(), "see that the path exists and that the disk is well"))
    return StorageError(f"cannot {action}: {meaning}", hint=hint, file=path)
