"""Staging: many blocks are read into a few buffers and sent from there, reading and sending side by side.

Each thread has two buffers: while one is on its way, the other is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

from weightloom.engine.blocks import Block

BUFFER_BYTES = 16 << 20
_BUFFERS = 2

T = TypeVar("T")


class Buffer(Protocol):
    """Host memory from which a device takes bytes by itself."""

    @property
    def memory(self) -> memoryview:
        """The bytes, to be filled while nothing is on its way."""
        ...

    def send(self, nbytes: int, address: int) -> None:
        """Start to copy the first bytes to an address of the device."""
        ...

    def wait(self) -> None:
        """Wait until what was sent has arrived."""
        ...

    def close(self) -> None:
        """Wait, and give the memory back."""
        ...


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """A block of something (`owner`), and the device's address that it goes to."""

    owner: T
    block: Block
    address: int


def send_all(
    pieces: Iterable[Piece[T]],
    read: Callable[[Piece[T], memoryview], None],
    make_buffer: Callable[[int], Buffer],
    threads: int,
) -> None:
    """Read each piece and send it to its address; all have arrived at the return.

    What `read` raises comes out, the first of it, once nothing is on its way any more.
    """
    work = _Shared(iter(pieces))
    with ThreadPoolExecutor(threads, "weightloom-stage") as pool:
        jobs = [pool.submit(_work, work, read, make_buffer) for _ in range(threads)]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            work.stop()
            raise


def _work(work: _Shared[T], read: Callable[[Piece[T], memoryview], None], make_buffer: Callable[[int], Buffer]) -> None:
    with ExitStack() as stack:
        buffers: list[Buffer] = []
        try:
            for turn, piece in enumerate(work):
                if len(buffers) < _BUFFERS:
                    buffers.append(make_buffer(BUFFER_BYTES))
                    stack.callback(buffers[-1].close)
                buffer = buffers[turn % _BUFFERS]
                buffer.wait()
                read(piece, buffer.memory[: piece.block.nbytes])
                buffer.send(piece.block.nbytes, piece.address)
        except BaseException:
            work.stop()
            raise


class _Shared(Generic[T]):
    """An iterator that several threads take from, until one stops it."""

    def __init__(self, pieces: Iterator[Piece[T]]) -> None:
        self._pieces = pieces
        self._lock = Lock()
        self._stopped = False

    def stop(self) -> None:
        """Give nothing more."""
        self._stopped = True

    def __iter__(self) -> Iterator[Piece[T]]:
        while True:
            with self._lock:
                piece = None if self._stopped else next(self._pieces, None)
            if piece is None:
                return
            yield piece
