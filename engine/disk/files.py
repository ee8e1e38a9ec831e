"""Files: every file-system call that a save makes, through one small object.

`perform` is the only door to the operating system, so that a test can count the calls and break each of them.
All methods raise StorageError, naming the file, where the operating system refuses.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weightloom.engine.disk.exchange import exchange_paths
from weightloom.engine.disk.system_calls import link, sync, sync_directory, take_lock, write_some
from weightloom.engine.os_errors import storage_error

T = TypeVar("T")

# One system call may not take more than 2**31 - 1 bytes on macOS.
_CHUNK = 16 << 20


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open descriptor and the path that it was opened by."""

    descriptor: int
    path: Path


class Files:
    """The file system as a save sees it. Holds no state."""

    def perform(self, action: str, path: Path, call: Callable[[], T]) -> T:
        """Make one file-system call; `action` (a verb) and `path` say what it does."""
        return call()

    def _do(self, action: str, path: Path, call: Callable[[], T]) -> T:
        try:
            return self.perform(action, path, call)
        except OSError as error:
            raise storage_error(action, path, error) from error

    def status(self, path: Path) -> os.stat_result | None:
        """Give lstat's answer, or None where nothing is."""

        def call() -> os.stat_result | None:
            try:
                return path.lstat()
            except FileNotFoundError:
                return None

        return self._do("look at", path, call)

    def names(self, folder: Path) -> list[str]:
        """List a directory's entries, sorted."""
        return self._do("list", folder, lambda: sorted(os.listdir(folder)))

    def make_directory(self, path: Path) -> None:
        """Make one directory; its parent exists and it does not."""
        self._do("make the directory", path, path.mkdir)

    def open_to_read(self, path: Path) -> OpenFile:
        """Open a file or a directory for reading."""
        return self._open(path, "open", os.O_RDONLY)

    def create(self, path: Path) -> OpenFile:
        """Make a file that does not exist yet and open it for writing."""
        return self._open(path, "create", os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def _open(self, path: Path, action: str, flags: int) -> OpenFile:
        return OpenFile(self._do(action, path, lambda: os.open(path, flags | os.O_CLOEXEC, 0o666)), path)

    def close(self, file: OpenFile) -> None:
        """Close a descriptor; some network file systems report a full disk only here."""
        self._do("close", file.path, lambda: os.close(file.descriptor))

    def read_at(self, file: OpenFile, offset: int) -> bytes:
        """Give up to 16 MiB from `offset`; nothing at the end of the file."""
        return self._do("read", file.path, lambda: os.pread(file.descriptor, _CHUNK, offset))

    def write_at(self, file: OpenFile, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all of `data` (contiguous, any format) at `offset`, however short the single writes are."""
        view = memoryview(data)
        rest = view.cast("B") if view.nbytes else memoryview(b"")
        while rest:
            done = self._write_some(file, rest[:_CHUNK], offset)
            rest, offset = rest[done:], offset + done

    def _write_some(self, file: OpenFile, data: memoryview, offset: int) -> int:
        return self._do("write", file.path, lambda: write_some(file.descriptor, data, offset))

    def write_file(self, path: Path, data: bytes) -> None:
        """Make a file with this content, synced."""
        file = self.create(path)
        try:
            self.write_at(file, data, 0)
            self.sync(file)
        finally:
            self.close(file)

    def sync(self, file: OpenFile) -> None:
        """Put a file's content on the device."""
        self._do("sync", file.path, lambda: sync(file.descriptor))

    def sync_directory(self, path: Path) -> None:
        """Put a directory's entries on the device, where the file system has a way to."""
        file = self.open_to_read(path)
        try:
            self._do("sync", path, lambda: sync_directory(file.descriptor))
        finally:
            self.close(file)

    def set_mode(self, path: Path, mode: int) -> None:
        """Set the permission bits."""
        self._do("set the permissions of", path, lambda: path.chmod(mode))

    def copy_attributes(self, source: Path, target: Path) -> None:
        """Copy permission bits, times and extended attributes."""
        self._do("set the attributes of", target, lambda: shutil.copystat(source, target, follow_symlinks=False))

    def rename(self, source: Path, target: Path) -> None:
        """Move a path within its file system; a file or an empty directory at `target` is replaced."""
        self._do("rename something to", target, lambda: os.rename(source, target))

    def exchange(self, first: Path, second: Path) -> bool:
        """Swap two paths in one step; False where the kernel or the file system cannot."""
        return self._do("exchange", second, lambda: exchange_paths(first, second))

    def link(self, source: Path, target: Path) -> bool:
        """Make a hard link (of a symbolic link itself, not of what it names); False where that cannot be."""

        return self._do("link", target, lambda: link(source, target))

    def copy_symlink(self, source: Path, target: Path) -> None:
        """Make a symbolic link with the same text."""
        self._do("link", target, lambda: os.symlink(os.readlink(source), target))

    def unlink(self, path: Path) -> None:
        """Remove a file or a symbolic link."""
        self._do("remove", path, path.unlink)

    def remove_directory(self, path: Path) -> None:
        """Remove an empty directory."""
        self._do("remove", path, path.rmdir)

    def lock(self, path: Path) -> OpenFile | None:
        """Make the lock file and take its lock; None while another holder has it."""
        file = self._open(path, "create", os.O_RDWR | os.O_CREAT)
        try:
            taken = self._do("lock", path, lambda: take_lock(file.descriptor, path))
        except BaseException:
            self.close(file)
            raise
        if taken:
            return file
        self.close(file)
        return None

    def unlock(self, file: OpenFile) -> None:
        """Let go of a lock, also for forked children that hold a copy of the descriptor."""
        try:
            self._do("unlock", file.path, lambda: fcntl.flock(file.descriptor, fcntl.LOCK_UN))
        finally:
            self.close(file)


FILES = Files()
