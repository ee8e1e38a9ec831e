"""SIGTERM as an exception, so that what a command has begun is cleaned up before it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """The process was asked to end."""


@contextmanager
def hearing_termination() -> Iterator[None]:
    """Raise Terminated in the block when SIGTERM comes; afterwards it means what it meant before.

    On another thread than the main one, which alone may say what a signal means, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated("terminated")
