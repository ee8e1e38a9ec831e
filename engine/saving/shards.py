"""Shards: which tensor goes to which file, the files' names, the index, and the writer of one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.errors import UsageError, WeightloomError
from weightloom.engine.spec import TensorSpec

_BUFFER = 256 << 10


class ShardError(WeightloomError):
    """A shard that is not what its header says was about to be accepted: a bug, not the user's fault."""

    exit_code: ClassVar[int] = 70


class ShardWriter:
    """Streams one safetensors file: the header's JSON as given, then the data, in any order, each byte once.

    `raw_header` is the JSON text with its padding, without the 8-byte length that is put in front. Small
    pieces that follow each other are gathered in a buffer of 256 KiB. The file is whole once `close` has
    returned; a `with` block that an exception ends gives the descriptor back and leaves the file unfinished.
    """

    def __init__(self, path: Path, raw_header: bytes, data_length: int, files: Files = FILES) -> None:
        self._path = path
        self._files = files
        self._data_start = 8 + len(raw_header)
        self._data_length = data_length
        self._written: list[tuple[int, int]] = []
        self._next = 0
        self._buffer = bytearray()
        self._buffer_start = 0
        self._file = files.create(path)
        self._open = True
        try:
            files.write_at(self._file, len(raw_header).to_bytes(8, "little") + raw_header, 0)
        except BaseException:
            self.discard()
            raise

    def write(self, data: bytes | memoryview) -> None:
        """Write the bytes that follow those of the last write. Raises StorageError, ShardError."""
        self.write_at(self._next, data)

    def write_at(self, offset: int, data: bytes | memoryview) -> None:
        """Write at an offset of the data section. Raises StorageError, and ShardError beyond its end."""
        view = memoryview(data)
        end = offset + view.nbytes
        if offset < 0 or end > self._data_length:
            raise self._error(f"data bytes {offset} to {end} of {self._data_length}")
        self._note(offset, end)
        if offset != self._buffer_start + len(self._buffer) or len(self._buffer) + view.nbytes > _BUFFER:
            self._flush()
            self._buffer_start = offset
        if view.nbytes > _BUFFER:
            self._files.write_at(self._file, view, self._data_start + offset)
            self._buffer_start = end
        elif view.nbytes:
            self._buffer += view.cast("B")
        self._next = end

    def close(self) -> None:
        """Check that each byte was written once, sync and close. Raises StorageError, ShardError."""
        try:
            self._check_covered()
            self._flush()
            self._files.sync(self._file)
        finally:
            self.discard()

    def discard(self) -> None:
        """Give the descriptor back, twice if need be; without `close` the file stays unfinished."""
        if self._open:
            self._open = False
            self._files.close(self._file)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _note(self, start: int, end: int) -> None:
        if self._written and self._written[-1][1] == start:
            self._written[-1] = (self._written[-1][0], end)
        elif start < end:
            self._written.append((start, end))

    def _flush(self) -> None:
        if self._buffer:
            self._files.write_at(self._file, self._buffer, self._data_start + self._buffer_start)
            self._buffer_start += len(self._buffer)
            self._buffer = bytearray()

    def _check_covered(self) -> None:
        spans = [(0, 0), *sorted(self._written), (self._data_length, self._data_length)]
        for (_, last), (start, end) in pairwise(spans):
            if start > last:
                raise self._error(f"data bytes {last} to {start} not written")
            if start < last:
                raise self._error(f"data bytes {start} to {min(last, end)} written twice")

    def _error(self, seen: str) -> ShardError:
        return ShardError(
            f"while writing a shard: {seen}",
            expected="every byte of the data section once",
            hint="this is a bug in weightloom: please report it",
            file=self._path,
        )


def split_into_shards(specs: Mapping[str, TensorSpec], max_shard_bytes: int | None) -> list[list[str]]:
    """Cut the names, in their order, into runs of at most `max_shard_bytes` bytes of data each.

    A tensor that is larger has a shard to itself. There is at least one shard. Raises UsageError for a limit
    below one byte.
    """
    if max_shard_bytes is None:
        return [list(specs)]
    if max_shard_bytes < 1:
        raise UsageError(
            f"a shard size of {max_shard_bytes} bytes",
            expected="at least one byte, or none for a single file",
            field="max_shard_bytes",
        )
    shards: list[list[str]] = [[]]
    room = max_shard_bytes
    for name, spec in specs.items():
        if spec.nbytes > room and shards[-1]:
            shards.append([])
            room = max_shard_bytes
        shards[-1].append(name)
        room -= spec.nbytes
    return shards


def shard_names(count: int) -> list[str]:
    """Name `count` shards as hubs do: `model.safetensors`, or `model-00001-of-00003.safetensors`, ..."""
    if count == 1:
        return ["model.safetensors"]
    return [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]


def index_json(assignment: Mapping[str, str], total_size: int) -> bytes:
    """Give the content of `model.safetensors.index.json`; `assignment` is tensor name -> shard."""
    index = {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(assignment.items()))}
    return (json.dumps(index, indent=2) + "\n").encode()
