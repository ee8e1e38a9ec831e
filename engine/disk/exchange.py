"""Swap two paths in one step, where the kernel and the file system can.

Linux: renameat2(2) with RENAME_EXCHANGE (kernel 3.15, glibc 2.28).
macOS: renamex_np(2) with RENAME_SWAP (10.12, on APFS).
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

# EPERM: container sandboxes answer so to calls that they do not know. Where it is a true refusal, the
# plain renames that follow meet it too and say so.
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2


def exchange_paths(first: Path, second: Path) -> bool:
    """Swap two existing paths; False where the kernel or the file system has no such call. Raises OSError."""
    swap = _swap_call()
    if swap is None:
        return False
    code = swap(os.fsencode(first), os.fsencode(second))
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), os.fspath(second))
    return code == 0


def _swap_call() -> Callable[[bytes, bytes], int] | None:
    """Give the call of this platform, answering an errno or 0; None where there is none."""
    import ctypes  # only a save needs it, and it is slow to import

    library = ctypes.CDLL(None, use_errno=True)
    name = "renamex_np" if sys.platform == "darwin" else "renameat2"
    try:
        call = library[name]
    except AttributeError:
        return None

    def swap(first: bytes, second: bytes) -> int:
        if name == "renamex_np":
            done = call(first, second, ctypes.c_uint(_RENAME_SWAP))
        else:
            done = call(_AT_FDCWD, first, _AT_FDCWD, second, ctypes.c_uint(_RENAME_EXCHANGE))
        return 0 if done == 0 else ctypes.get_errno()

    return swap
