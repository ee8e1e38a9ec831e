"""Fetch: tensors of a checkpoint as MLX arrays, each read into its own memory once.

Where MLX's memory is the host's, a virtual file is what MLX reads, and each tensor is gathered into its place. On
CUDA, MLX would copy every tensor from pageable memory on its way; with `cuda-bindings` the large ones are gathered
into pinned buffers instead, from which the device takes them while the next are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.carrier import carried
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.reading.cuda_memory import PinnedBuffer, cuda_available, fresh_arrays
from weightloom.engine.reading.gather import gather
from weightloom.engine.reading.meter import Meter
from weightloom.engine.reading.origin import CheckpointOrigin
from weightloom.engine.reading.staging import BUFFER_BYTES, BufferPool, Piece, send_all
from weightloom.engine.reading.threads import DEVICE, thread_count
from weightloom.engine.reading.virtual_file import load_arrays
from weightloom.engine.reading.wanted import Wanted
from weightloom.engine.views.blocks import blocks

if TYPE_CHECKING:
    import mlx.core as mx

# Below this a second thread costs more than it saves.
_WORTH_SPLITTING = 2 << 20
# Below this the way through pinned buffers does.
_WORTH_STAGING = 1 << 20
_BATCH = 256 << 20


@dataclass(frozen=True)
class Fetch:
    """What one load reads with."""

    checkpoint: Checkpoint
    meter: Meter
    pool: ThreadPoolExecutor | None
    threads: int
    stages: int
    buffers: BufferPool

    def arrays(self, wanted: Sequence[Wanted]) -> dict[str, mx.array]:
        """Make MLX arrays."""
        staged = [each for each in wanted if each.view.nbytes >= _WORTH_STAGING] if cuda_available() else []
        found = self._staged(staged) if staged else {}
        others = [each for each in wanted if each.name not in found]
        return found | self.through_files(others)

    def through_files(self, wanted: Sequence[Wanted]) -> dict[str, mx.array]:
        """Make MLX arrays, wherever they are computed with, through virtual files."""
        found: dict[str, mx.array] = {}
        for start, stop in _batches([each.view.nbytes for each in wanted]):
            found |= self._batch(wanted[start:stop])
        return found

    def _staged(self, wanted: Sequence[Wanted]) -> dict[str, mx.array]:
        fresh = fresh_arrays([carried(each.view.spec) for each in wanted])
        pieces = (
            Piece(each, block, address + block.start)
            for each, (_, address) in zip(wanted, fresh, strict=True)
            for block in blocks(each.view, BUFFER_BYTES)
        )

        def read(piece: Piece[Wanted], out: memoryview) -> None:
            gather(piece.block.view, CheckpointOrigin(self.checkpoint).reader(piece.owner.group, ()), out)
            self.meter.add(len(out))

        send_all(pieces, read, self.buffers, self.stages)
        return {each.name: array for each, (array, _) in zip(wanted, fresh, strict=True)}

    def _batch(self, wanted: Sequence[Wanted]) -> dict[str, mx.array]:
        def fill(number: int, out: memoryview) -> None:
            self._read(wanted[number], out)
            self.meter.add(len(out))

        made = load_arrays([carried(each.view.spec) for each in wanted], fill)
        return {each.name: array for each, array in zip(wanted, made, strict=True)}

    def _read(self, wanted: Wanted, out: memoryview) -> None:
        """Gather one tensor, in as many parts as there are threads when it is large."""
        read = CheckpointOrigin(self.checkpoint).reader(wanted.group, ())
        count = min(self.threads, len(out) // _WORTH_SPLITTING)
        if self.pool is None or count < 2:
            gather(wanted.view, read, out)
            return
        jobs = [
            self.pool.submit(gather, part.view, read, out[part.start : part.start + part.nbytes])
            for part in blocks(wanted.view, -(-len(out) // count))
        ]
        # All must have ended before the buffer may go.
        wait(jobs)
        while jobs:
            jobs.pop(0).result()


@contextmanager
def fetching(checkpoint: Checkpoint, threads: int | None, meter: Meter) -> Iterator[Fetch]:
    """Yield a Fetch whose threads end with the block. Raises UsageError for a number of threads that cannot be."""
    count, stages = thread_count(threads), thread_count(threads, DEVICE)
    buffers = BufferPool(PinnedBuffer)
    pool = ThreadPoolExecutor(count, "weightloom-read") if count > 1 else None
    with pool or nullcontext(), closing(buffers):
        yield Fetch(checkpoint, meter, pool, count, stages, buffers)


def _batches(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut a list of sizes in bytes into runs, each for one read: between two of them an interrupt is heard."""
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if total and total + size > _BATCH:
            yield start, number
            start, total = number, 0
        total += size
    if sizes:
        yield start, len(sizes)
