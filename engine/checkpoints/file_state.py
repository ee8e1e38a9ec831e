"""What is remembered of a file to notice later that it is another.

The inode is not part of it: a file system may number files anew, and a copy put back is as good.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

# As long as a header may be; a longer length is not a header's, and only its 8 bytes are hashed.
_MOST = 100_000_000
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class FileState:
    """`size` in bytes, `modified` in nanoseconds since 1970, `head` the header's sha256."""

    size: int
    modified: int
    head: bytes

    def difference(self, now: FileState) -> str | None:
        """Say what is not the same in `now`, or None."""
        if now.size != self.size:
            return f"its size was {self.size} bytes and is {now.size}"
        if now.head != self.head:
            return "its header is another"
        if now.modified != self.modified:
            return "it has been written to: its modification time is another"
        return None


def state_of(descriptor: int) -> FileState:
    """Give the state of an open file. Raises OSError."""
    status = os.fstat(descriptor)
    return FileState(status.st_size, status.st_mtime_ns, _head(descriptor, status.st_size))


def _head(descriptor: int, size: int) -> bytes:
    length = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    end = 8 + (length if length <= min(_MOST, size - 8) else 0)
    digest = hashlib.sha256()
    for offset in range(0, end, _PIECE):
        digest.update(os.pread(descriptor, min(_PIECE, end - offset), offset))
    return digest.digest()
