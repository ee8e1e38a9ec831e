"""Staging: reads into buffers that send by themselves; the device here is memory of the host.

What speaks to CUDA itself is compared with the plain way by benchmarks/device_loading.py, on a machine that has it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import mlx.core as mx
import numpy as np
import pytest

from weightloom.engine import StorageError, TensorSpec
from weightloom.engine.reading.cuda_memory import check_apart, checked, cuda_available
from weightloom.engine.reading.staging import BUFFER_BYTES, BufferPool, Piece, send_all
from weightloom.engine.views.blocks import Block, blocks
from weightloom.engine.views.view import View


@dataclass
class Device:
    """Counts its buffers; each sends on a thread of its own, late."""

    delay: float = 0.0
    open: int = 0
    most: int = 0
    sent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.pool = BufferPool(self.buffer)

    def buffer(self, nbytes: int) -> HostBuffer:
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
        return HostBuffer(self, bytearray(nbytes))


class HostBuffer:
    def __init__(self, device: Device, content: bytearray) -> None:
        self._device, self._content = device, content
        self._thread: threading.Thread | None = None

    @property
    def memory(self) -> memoryview:
        assert self._thread is None, "filled while it is being sent"
        return memoryview(self._content)

    def send(self, nbytes: int, address: int) -> None:
        def copy() -> None:
            time.sleep(self._device.delay)
            ctypes.memmove(address, bytes(self._content[:nbytes]), nbytes)
            with self._device.lock:
                self._device.sent += nbytes

        self._thread = threading.Thread(target=copy)
        self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        self.wait()
        self._device.open -= 1


def target(nbytes: int) -> tuple[bytearray, int]:
    memory = bytearray(nbytes)
    return memory, ctypes.addressof((ctypes.c_char * nbytes).from_buffer(memory))


def pieces(address: int, nbytes: int, step: int) -> Iterator[Piece[int]]:
    for number, block in enumerate(blocks(View.identity(0, TensorSpec("U8", (nbytes,))), step)):
        yield Piece(number, block, address + block.start)


@pytest.mark.parametrize("threads", [1, 3])
def test_all_bytes_arrive_through_two_buffers_a_thread(threads: int) -> None:
    data = np.random.default_rng(1).integers(0, 256, 10_000, np.uint8).tobytes()
    memory, address = target(len(data))
    device = Device(delay=0.001)

    def read(piece: Piece[int], out: memoryview) -> None:
        out[:] = data[piece.block.start : piece.block.start + len(out)]

    send_all(pieces(address, len(data), 100), read, device.pool, threads)
    assert (bytes(memory), device.sent) == (data, len(data))
    assert 1 <= device.most <= 2 * threads
    made = device.open
    send_all(pieces(address, len(data), 5000), read, device.pool, threads)
    assert device.open == made
    device.pool.close()
    assert (bytes(memory), device.open) == (data, 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_comes_out_when_nothing_is_on_its_way_any_more(threads: int) -> None:
    _, address = target(1000)
    device, read_pieces = Device(delay=0.01), []

    def read(piece: Piece[int], out: memoryview) -> None:
        read_pieces.append(piece.owner)
        if piece.owner == 5:
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        send_all(pieces(address, 1000, 10), read, device.pool, threads)
    device.pool.close()
    assert device.open == 0 and len(read_pieces) < 100


def test_a_buffer_that_cannot_be_had() -> None:
    def no_buffer(nbytes: int) -> HostBuffer:
        raise StorageError("no memory")

    with pytest.raises(StorageError, match="no memory"):
        send_all(pieces(0, 10, 5), lambda piece, out: None, BufferPool(no_buffer), 2)


def test_nothing_to_send_takes_no_buffer() -> None:
    device = Device()
    send_all(iter([]), lambda piece, out: None, device.pool, 2)
    assert device.most == 0 and Block(View.identity(0, TensorSpec("U8", (1,))), 0).nbytes <= BUFFER_BYTES


def test_arrays_that_share_a_byte_are_refused() -> None:
    check_apart([(100, 10), (0, 100), (110, 1)])
    with pytest.raises(StorageError, match="same device memory"):
        check_apart([(100, 10), (0, 101)])


def test_an_answer_of_cuda_is_an_error_or_its_values() -> None:
    assert checked((0, 5)) == 5 and checked((0,)) is None
    with pytest.raises(StorageError, match="CUDA refuses"):
        checked((2, None))


@pytest.mark.skipif(mx.cuda.is_available(), reason="for machines without CUDA")
def test_without_cuda_the_plain_way_is_taken() -> None:
    assert not cuda_available()
