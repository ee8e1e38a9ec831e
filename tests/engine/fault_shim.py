"""A file system that counts the calls of a save and lets one of them go wrong.

`CountingFiles()` only counts: `calls` lists (action, path). `CountingFiles(fail_at=k, how=...)`, k from 1:

    "error"        the call is not made and fails with `code` (ENOSPC unless told)
    "errors"       so do all calls after it
    "crash"        the process dies before the call: `Crash` is raised, every later call raises it too, and
                   descriptors are closed, as the kernel would (which frees locks)
    "crash-after"  the same, after the call
    "exit", "exit-after"   the process really ends, with `EXIT_CODE`
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from weightloom.engine.disk.files import Files, OpenFile

try:
    from weightloom.engine.disk.recovery import recover as recover
except ImportError:

    def recover(path: Path) -> None:
        aside = path.parent / f".{path.name}.weightloom-old"
        if not path.exists() and aside.exists():
            aside.rename(path)


T = TypeVar("T")

EXIT_CODE = 77
CRASHES = ("crash", "crash-after")
EXITS = ("exit", "exit-after")


class Crash(BaseException):
    """The process is gone; no clean-up can have an effect."""


class CountingFiles(Files):
    def __init__(
        self,
        fail_at: int | None = None,
        how: str = "error",
        *,
        code: int = errno.ENOSPC,
        can_exchange: bool = True,
        syncs: bool = False,
    ) -> None:
        assert how in ("error", "errors", *CRASHES, *EXITS)
        self.fail_at = fail_at
        self.how = how
        self.code = code
        self.can_exchange = can_exchange
        # A dead process loses nothing that was written, so tests of it need not wait for the device.
        self.syncs = syncs
        self.calls: list[tuple[str, Path]] = []
        self.dead = False
        self._descriptors: set[int] = set()

    def perform(self, action: str, path: Path, call: Callable[[], T]) -> T:
        if self.dead:
            raise Crash
        self.calls.append((action, path))
        due = self.fail_at is not None and len(self.calls) == self.fail_at
        if due or (self.how == "errors" and self.fail_at is not None and len(self.calls) > self.fail_at):
            return self._fail(action, call)
        if action == "sync" and not self.syncs:
            return None  # type: ignore[return-value]
        return call()

    def exchange(self, first: Path, second: Path) -> bool:
        return self.can_exchange and super().exchange(first, second)

    def _open(self, path: Path, action: str, flags: int) -> OpenFile:
        file = super()._open(path, action, flags)
        self._descriptors.add(file.descriptor)
        return file

    def close(self, file: OpenFile) -> None:
        super().close(file)
        self._descriptors.discard(file.descriptor)

    def _fail(self, action: str, call: Callable[[], T]) -> T:
        if self.how.startswith("error"):
            raise OSError(self.code, os.strerror(self.code))
        if self.how.endswith("after"):
            result = call()
            if action in ("create", "open") and isinstance(result, int):
                self._descriptors.add(result)
        if self.how in EXITS:
            os._exit(EXIT_CODE)
        self.dead = True
        for descriptor in self._descriptors:
            with suppress(OSError):
                os.close(descriptor)
        raise Crash


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Every path below `root`: a file's bytes, a link's text after "-> ", None for a directory."""
    found: dict[str, bytes | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = b"-> " + os.fsencode(os.readlink(path))
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def beside(target: Path) -> list[str]:
    """What is in the target's folder besides the target."""
    return sorted(path.name for path in target.parent.iterdir() if path != target)
