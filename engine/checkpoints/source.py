"""Byte sources: where the bytes of a shard come from. A source is read by position, by any thread."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Protocol

from weightloom.engine.checkpoints.file_source import FileSource as FileSource
from weightloom.engine.checkpoints.reading import byte_view, cut_short
from weightloom.engine.errors import CheckpointError


class ByteSource(Protocol):
    """Bytes that can be read at any offset, from several threads at once."""

    @property
    def name(self) -> str:
        """What messages call it: the path, or "memory"."""
        ...

    @property
    def size(self) -> int:
        """Bytes in all."""
        ...

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill the whole buffer (contiguous, writable) from `offset`.

        Raises CheckpointError, naming the source, when it ends before, and StorageError when the system
        refuses.
        """
        ...

    def check_unchanged(self) -> None:
        """Raise CheckpointError, naming what changed, when the bytes may not be those of the opening."""
        ...

    def check_contents(self) -> None:
        """Raise CheckpointError when the bytes that are read now may not be those of the opening."""
        ...

    def close(self) -> None:
        """Let go of what it holds; reading afterwards is an error. Closing twice is fine."""
        ...


class MemorySource:
    """Bytes in memory: the given pieces (contiguous, any format), one after the other, not copied."""

    def __init__(self, *pieces: bytes | bytearray | memoryview, name: str = "memory") -> None:
        self._name = name
        self._pieces = tuple(view for view in map(byte_view, pieces) if view)
        self._starts = (0, *accumulate(len(piece) for piece in self._pieces))

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._name

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._starts[-1]

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill the whole buffer from `offset`. Raises CheckpointError beyond the end."""
        rest = byte_view(buffer)
        if offset < 0 or offset + len(rest) > self.size:
            raise cut_short(self._name, len(rest), offset, max(0, self.size - offset))
        number = bisect_right(self._starts, offset) - 1
        skip = offset - self._starts[number]
        while rest:
            part = self._pieces[number][skip : skip + len(rest)]
            rest[: len(part)] = part
            rest, number, skip = rest[len(part) :], number + 1, 0

    def check_unchanged(self) -> None:
        """Do nothing: who gave the memory answers for it."""

    def check_contents(self) -> None:
        """Do nothing: who gave the memory answers for it."""

    def close(self) -> None:
        """Do nothing: the memory goes with its last user."""


class AbsentSource:
    """A size without bytes: for checkpoints that are only names, dtypes and shapes."""

    def __init__(self, size: int, name: str = "specs") -> None:
        self._name = name
        self._size = size

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._name

    @property
    def size(self) -> int:
        """Bytes that there would be."""
        return self._size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Raise CheckpointError: there is nothing to read."""
        raise CheckpointError(
            "this checkpoint has names, dtypes and shapes only, no data",
            expected="a checkpoint made from files or arrays",
            hint="open the files, or give arrays, to read or save tensors",
            file=self._name,
        )

    def check_unchanged(self) -> None:
        """Do nothing: there are no bytes to change."""

    def check_contents(self) -> None:
        """Do nothing: there are no bytes to change."""

    def close(self) -> None:
        """Do nothing: nothing is held."""
