"""A checkpoint as a file of kept tensors records it: every name and place, and the bytes that were kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.checkpoints.header import Header, parse_header
from weightloom.engine.checkpoints.index import Index, parse_index
from weightloom.engine.checkpoints.kept_names import CONFIG, HEADER, INDEX, PASSED
from weightloom.engine.checkpoints.kept_note import SEAL, KeptNote, seal_of
from weightloom.engine.checkpoints.reading import byte_view
from weightloom.engine.checkpoints.shard import Shard
from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.errors import CheckpointError

Range = tuple[int, int, ByteSource, int]


class RecordedSource:
    """A file of which some ranges are known: (start, end, source of the bytes, offset there). Others cannot be read."""

    def __init__(self, name: str, size: int, ranges: list[Range]) -> None:
        self._name, self._size = name, size
        self._ranges = sorted(ranges, key=lambda each: each[:2])
        self._starts = [each[0] for each in self._ranges]

    @property
    def name(self) -> str:
        """The file, as it was called."""
        return self._name

    @property
    def size(self) -> int:
        """Bytes that it had."""
        return self._size

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill the whole buffer from `offset`. Raises CheckpointError where a byte of it was not kept."""
        rest = byte_view(buffer)
        while rest:
            number = bisect_right(self._starts, offset) - 1
            start, end, source, place = self._ranges[number] if number >= 0 else (0, 0, self, 0)
            if not start <= offset < end:
                raise self._not_kept(offset)
            part = rest[: end - offset]
            source.read_into(place + offset - start, part)
            rest, offset = rest[len(part) :], offset + len(part)

    def check_unchanged(self) -> None:
        """Check the file that the bytes are in."""
        for source in {id(each[2]): each[2] for each in self._ranges}.values():
            source.check_unchanged()

    def check_contents(self) -> None:
        """Check the open file that the bytes are in."""
        for source in {id(each[2]): each[2] for each in self._ranges}.values():
            source.check_contents()

    def close(self) -> None:
        """Do nothing: whoever opened the file of kept tensors closes it."""

    def _not_kept(self, offset: int) -> CheckpointError:
        return CheckpointError(
            f"byte {offset} of it was not kept",
            expected="a tensor among those that were kept",
            hint="convert the weights that it was kept beside",
            file=self._name,
        )


def check_seal(kept: Checkpoint) -> None:
    """Hold what a file of kept tensors says against its seal; raises CheckpointError where it was changed since."""
    names = [name for name in kept.tensors if name == CONFIG or name.startswith((INDEX, HEADER))]
    found = seal_of(kept.metadata, {name: _bytes_of(kept, name) for name in names})
    if kept.metadata.get(SEAL) != found:
        raise _unsound(kept, f"a note and records that are not those of its seal {kept.metadata.get(SEAL)}")


def recorded_config(kept: Checkpoint) -> bytes | None:
    """Give the source's config, verbatim; None where it had none."""
    return _bytes_of(kept, CONFIG) if CONFIG in kept.tensors else None


def recorded_checkpoint(kept: Checkpoint, note: KeptNote, folder: Path) -> Checkpoint:
    """Give the source as it was; its files are called as if they lay in `folder`.

    Raises CheckpointError where what was recorded does not hold together.
    """
    headers = [name for name in kept.tensors if name.startswith(HEADER)]
    if len(headers) != len(note.lengths) or not headers:
        raise _unsound(kept, f"{len(headers)} headers and {len(note.lengths)} lengths")
    index = _index(kept, folder)
    paths = [folder / name.removeprefix(HEADER) for name in headers]
    wanted = {folder / path.name for path in paths} if index is None else set(index.files)
    if set(paths) != wanted or len(wanted) != len(paths):
        raise _unsound(kept, f"the files {', '.join(map(str, paths))}")
    shards = [
        _shard(kept, number, _bytes_of(kept, name), path, length)
        for number, (name, path, length) in enumerate(zip(headers, paths, note.lengths, strict=True))
    ]
    return Checkpoint.from_shards(shards, index)


def _index(kept: Checkpoint, folder: Path) -> Index | None:
    found = [name for name in kept.tensors if name.startswith(INDEX)]
    if not found:
        return None
    path = folder / Path(found[0].removeprefix(INDEX)).name
    return parse_index(_bytes_of(kept, found[0]), path)


def _shard(kept: Checkpoint, number: int, raw: bytes, path: Path, length: int) -> Shard:
    header = parse_header(raw, length, file=str(path))
    ranges = list(_ranges(kept, number, header))
    return Shard(path, header, RecordedSource(str(path), header.data_start + length, ranges))


def _ranges(kept: Checkpoint, number: int, header: Header) -> Iterator[Range]:
    for entry in header.entries:
        passed = f"{PASSED}{number}/{entry.name}"
        name = passed if passed in kept.tensors else entry.name
        if name not in kept.tensors or entry.start == entry.end:
            continue
        if kept.tensors[name].nbytes != entry.end - entry.start:
            raise _unsound(kept, f"{name} with {kept.tensors[name].nbytes} bytes")
        source, offset = kept.source_of(name)
        yield header.data_start + entry.start, header.data_start + entry.end, source, offset


def _bytes_of(kept: Checkpoint, name: str) -> bytes:
    data = bytearray(kept.tensors[name].nbytes)
    kept.read_into(name, 0, memoryview(data))
    return bytes(data)


def _unsound(kept: Checkpoint, seen: str) -> CheckpointError:
    return CheckpointError(
        f"the record of the source has {seen}",
        expected="the files of one checkpoint",
        hint="it is damaged: remove it to go on without what it keeps",
        file=kept.shards[0].name,
    )
