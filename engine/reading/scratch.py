"""Scratch: memory that is used for a moment and goes back to the system."""

from __future__ import annotations

from mmap import mmap

_LARGE = 1 << 20


def scratch(size: int) -> memoryview:
    """Give that many bytes that can be written; raises MemoryError.

    An allocator keeps what was freed, for each thread apart. Large scratch is mapped, so that it is gone from the
    process as soon as nothing holds it.
    """
    if size < _LARGE:
        return memoryview(bytearray(size))
    try:
        return memoryview(mmap(-1, size))
    except OSError as error:
        raise MemoryError(f"{size} bytes of scratch") from error
