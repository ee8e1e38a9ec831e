"""A progress callback's count of bytes."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weightloom.engine.plan import Progress


class Meter:
    """Tells a progress callback how many bytes are done; from several threads, one call at a time."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._lock = Lock()

    def add(self, count: int) -> None:
        """Count more bytes."""
        with self._lock:
            self._done += count
            if self._progress is not None:
                self._progress(self._done, self._total)
