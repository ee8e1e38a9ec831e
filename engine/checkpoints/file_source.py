"""A file as a byte source: one descriptor, positioned reads, and a memory of what it was when opened."""

from __future__ import annotations

import errno
import os
import stat
import weakref
from contextlib import suppress
from pathlib import Path

from weightloom.engine.checkpoints.file_state import FileState, state_of
from weightloom.engine.checkpoints.reading import byte_view, cut_short
from weightloom.engine.errors import CheckpointError, StorageError
from weightloom.engine.os_errors import storage_error

# One call gives at most 2**31 - 4096 bytes on Linux, and fails beyond 2**31 - 1 on macOS.
_PIECE = 1 << 30


class FileSource:
    """A regular file, opened once and read by position.

    It is not mapped: a file cut short is an error, not a signal. Threads may read at once. The descriptor is
    closed by `close`, which must wait for reads under way, or with the last reference.

    Raises CheckpointError when there is no such regular file, StorageError when it cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._absolute = Path(os.path.abspath(path))
        self._descriptor, self._state = _open(self._path, self._absolute)
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        self._closing.atexit = False

    @property
    def name(self) -> str:
        """The path, as it was given."""
        return str(self._path)

    @property
    def size(self) -> int:
        """Bytes when it was opened."""
        return self._state.size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill the whole buffer from `offset`. Raises CheckpointError (cut short, closed), StorageError."""
        self._check_open()
        view = byte_view(buffer)
        done = 0
        while done < len(view):
            got = self._read_some(offset + done, view[done : done + _PIECE])
            if got == 0:
                raise cut_short(self.name, len(view), offset, done)
            done += got

    def check_unchanged(self) -> None:
        """Raise CheckpointError when the open file, or what its path now names, is not as it was opened.

        Compared are size, modification time and the header's hash. Raises StorageError when they cannot be
        read.
        """
        self._check_open()
        self._compare(_state(self._path, self._descriptor))
        self._compare(_state_now(self._path, self._absolute))

    def check_contents(self) -> None:
        """Raise CheckpointError when the open file was written to since it was opened, by size and modification time.

        What its path now names does not matter: the file that was opened is read as long as it is open.
        """
        self._check_open()
        status = self._status()
        self._compare(FileState(status.st_size, status.st_mtime_ns, self._state.head))

    def close(self) -> None:
        """Close the descriptor; twice is fine."""
        self._closing()

    def _check_open(self) -> None:
        if not self._closing.alive:
            raise CheckpointError(
                "the checkpoint is closed",
                expected="an open one",
                hint="read before closing it, or open it again",
                file=self.name,
            )

    def _read_some(self, offset: int, view: memoryview) -> int:
        try:
            return os.preadv(self._descriptor, [view], offset)
        except OSError as error:
            raise storage_error("read", self._path, error) from error

    def _status(self) -> os.stat_result:
        try:
            return os.fstat(self._descriptor)
        except OSError as error:
            raise storage_error("read", self._path, error) from error

    def _compare(self, now: FileState) -> None:
        difference = self._state.difference(now)
        if difference is not None:
            raise _changed(self._path, difference)


def _open(path: Path, absolute: Path) -> tuple[int, FileState]:
    descriptor = _open_regular(path, absolute)
    try:
        return descriptor, _state(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _open_regular(path: Path, absolute: Path) -> int:
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its writer.
        descriptor = os.open(absolute, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise _missing(path, absolute) from error
    except OSError as error:
        raise _cannot_open(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CheckpointError("not a regular file", expected="a safetensors file", file=path)
    _expect_reading(descriptor)
    return descriptor


def _expect_reading(descriptor: int) -> None:
    """Ask the system to read further ahead than it does by itself, where it takes such hints."""
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)


def _state(path: Path, descriptor: int) -> FileState:
    try:
        return state_of(descriptor)
    except OSError as error:
        raise storage_error("read", path, error) from error


def _state_now(path: Path, absolute: Path) -> FileState:
    """Give the state of whatever the path names now; a path that names nothing has changed too."""
    try:
        descriptor, state = _open(path, absolute)
    except CheckpointError as error:
        raise _changed(path, f"it is gone ({error.seen})") from error
    os.close(descriptor)
    return state


def _missing(path: Path, absolute: Path) -> CheckpointError:
    link = absolute.is_symlink()
    return CheckpointError(
        "a symbolic link to a file that is not there" if link else "no such file",
        expected="a safetensors file",
        hint="check the path; an incomplete download leaves such links" if link else "check the path",
        file=path,
    )


def _cannot_open(path: Path, error: OSError) -> StorageError:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageError(
            "cannot open: too many open files",
            expected="one descriptor for each shard",
            hint="raise the limit (ulimit -n), or close other checkpoints",
            file=path,
        )
    return storage_error("open", path, error)


def _changed(path: Path, difference: str) -> CheckpointError:
    return CheckpointError(
        f"the file has changed since it was opened: {difference}",
        expected="the file as it was opened",
        hint="open the checkpoint again",
        file=path,
    )
