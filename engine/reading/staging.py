"""Staging: many blocks are read into a few buffers and sent from there, reading and sending side by side.

Each thread has two buffers: while one is on its way, the other is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

from weightloom.engine.views.blocks import Block

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


class BufferPool:
    """Buffers that are made when they are first needed and used again; `close` gives all of them back."""

    def __init__(self, make: Callable[[int], Buffer]) -> None:
        self._make = make
        self._made: list[Buffer] = []
        self._free: list[Buffer] = []
        self._lock = Lock()

    @contextmanager
    def lent(self) -> Iterator[Buffer]:
        """Lend a buffer; it comes back when what was sent from it has arrived."""
        with self._lock:
            buffer = self._free.pop() if self._free else None
        if buffer is None:
            buffer = self._make(BUFFER_BYTES)
            with self._lock:
                self._made.append(buffer)
        try:
            yield buffer
        finally:
            buffer.wait()
            with self._lock:
                self._free.append(buffer)

    def close(self) -> None:
        """Give the memory back; nothing may be lent any more."""
        with ExitStack() as stack:
            for buffer in self._made:
                stack.callback(buffer.close)
            self._made, self._free = [], []


@dataclass(frozen=True, slots=True)
class Piece(Generic[T]):
    """A block of something (`owner`), and the device's address that it goes to."""

    owner: T
    block: Block
    address: int


def send_all(
    pieces: Iterable[Piece[T]],
    read: Callable[[Piece[T], memoryview], None],
    pool: BufferPool,
    threads: int,
) -> None:
    """Read each piece and send it to its address; all have arrived at the return.

    What `read` raises comes out, the first of it, once nothing is on its way any more.
    """
    work = _Shared(iter(pieces))
    with ThreadPoolExecutor(threads, "weightloom-stage") as executor:
        jobs = [executor.submit(_work, work, read, pool) for _ in range(threads)]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            work.stop()
            raise


def _work(work: _Shared[T], read: Callable[[Piece[T], memoryview], None], pool: BufferPool) -> None:
    buffers: list[Buffer] = []
    with ExitStack() as stack:
        try:
            for turn, piece in enumerate(work):
                if len(buffers) < _BUFFERS:
                    buffers.append(stack.enter_context(pool.lent()))
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
