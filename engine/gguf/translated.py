"""A GGUF file as a byte source of another form: a virtual safetensors file whose bytes are made when they are read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from weightloom.engine.checkpoints.reading import byte_view, cut_short
from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.gguf.blocks import Blocks, Values

_SCRATCH = 1 << 20


@dataclass(frozen=True, slots=True)
class Translation:
    """How blocks of `taken` bytes become `made` bytes each; `apply` None where they are the same bytes."""

    taken: int
    made: int
    apply: Callable[[Blocks], Values] | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """`count` blocks of a file, from byte `offset` on, translated."""

    translation: Translation
    offset: int
    count: int

    @property
    def nbytes(self) -> int:
        """Bytes that it makes."""
        return self.count * self.translation.made

    def read_into(self, source: ByteSource, start: int, out: memoryview) -> None:
        """Fill `out` with the bytes made from byte `start` on, reading only the blocks that they come from."""
        translation = self.translation
        if translation.apply is None:
            source.read_into(self.offset + start, out)
            return
        step = max(1, _SCRATCH // translation.taken)
        end = start + len(out)
        for first in range(start // translation.made, -(-end // translation.made), step):
            blocks = min(step, -(-end // translation.made) - first)
            made = self._made(source, first, blocks)
            skip = max(0, start - first * translation.made)
            part = made[skip : end - first * translation.made]
            place = max(0, first * translation.made - start)
            out[place : place + len(part)] = part

    def _made(self, source: ByteSource, first: int, count: int) -> memoryview:
        translation = self.translation
        raw = bytearray(count * translation.taken)
        source.read_into(self.offset + first * translation.taken, memoryview(raw))
        blocks = np.frombuffer(raw, np.uint8).reshape(count, translation.taken)
        assert translation.apply is not None
        # Damaged scales may be infinite; their products are whatever IEEE 754 says, without a warning.
        with np.errstate(all="ignore"):
            return memoryview(np.ascontiguousarray(translation.apply(blocks)).tobytes())


class TranslatedSource:
    """A head in memory, then pieces of another source, translated as they are read. Threads may read at once."""

    def __init__(self, head: bytes, pieces: Sequence[Piece], source: ByteSource) -> None:
        self._head = head
        self._pieces = tuple(piece for piece in pieces if piece.nbytes)
        self._source = source
        self._starts = (*accumulate((piece.nbytes for piece in self._pieces), initial=len(head)),)

    @property
    def name(self) -> str:
        """What messages call it: the GGUF file."""
        return self._source.name

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._starts[-1]

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill the whole buffer from `offset`. Raises CheckpointError, StorageError, MissingExtra."""
        rest = byte_view(buffer)
        if offset < 0 or offset + len(rest) > self.size:
            raise cut_short(self.name, len(rest), offset, max(0, self.size - offset))
        if rest and offset < len(self._head):
            part = self._head[offset : offset + len(rest)]
            rest[: len(part)] = part
            rest, offset = rest[len(part) :], offset + len(part)
        while rest:
            number = bisect_right(self._starts, offset) - 1
            length = min(len(rest), self._starts[number + 1] - offset)
            self._pieces[number].read_into(self._source, offset - self._starts[number], rest[:length])
            rest, offset = rest[length:], offset + length

    def check_unchanged(self) -> None:
        """Raise CheckpointError when the file has changed since it was opened."""
        self._source.check_unchanged()

    def check_contents(self) -> None:
        """Raise CheckpointError when the open file was written to since it was opened."""
        self._source.check_contents()

    def close(self) -> None:
        """Close the file; twice is fine."""
        self._source.close()
