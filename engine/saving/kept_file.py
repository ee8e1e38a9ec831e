"""The file of kept tensors: what a layout has no room for, and the record of the files that it was made from.

A safetensors file beside the weights. It holds source tensors under their own names, and, under names that start with
`weightloom.record/`, bytes as U8 vectors: `config.json`, `index/NAME`, and `header/NAME` for each file of the source,
in order, verbatim; a seal in its metadata is the digest of these and of the note. A tensor that the source's index
passes over is `passed/NUMBER/NAME`, by the number of its file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.checkpoints.header import build_header
from weightloom.engine.checkpoints.kept_names import CONFIG, HEADER, INDEX, PASSED, RECORD
from weightloom.engine.checkpoints.kept_note import SEAL, KeptNote, seal_of
from weightloom.engine.checkpoints.source import ByteSource, MemorySource
from weightloom.engine.errors import UsageError
from weightloom.engine.natural import natural
from weightloom.engine.saving.shard_plan import Output, ShardPlan, relative_name
from weightloom.engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class _Entry:
    """One tensor of the file, and where its bytes are."""

    name: str
    spec: TensorSpec
    source: ByteSource
    offset: int


def kept_shard(source: Checkpoint, names: Collection[str], config: bytes | None, note: KeptNote) -> ShardPlan:
    """Lay out the file for some tensors of a source and all of its record; `config` is the source's own, as it is.

    Raises UsageError for a tensor whose name is that of a record.
    """
    taken = sorted((name for name in source.tensors if name.startswith(RECORD)), key=natural)
    if taken:
        raise UsageError(f"a tensor is called {taken[0]}", expected=f"names without {RECORD}", tensor=taken[0])
    records, metadata = dict(_records(source, config)), note.metadata()
    said = [_bytes_entry(name, data) for name, data in records.items()]
    entries = [*said, *_kept(source, names), *_passed(source)]
    sealed = {**metadata, SEAL: seal_of(metadata, records)}
    header = build_header([(each.name, each.spec) for each in entries], sealed)
    outputs, start = [], 0
    for each in entries:
        outputs.append(Output(each.name, start, each.spec.nbytes, kept=(each.source, each.offset)))
        start += each.spec.nbytes
    return ShardPlan(KEPT_NAME, header, start, tuple(outputs))


def data_lengths(source: Checkpoint) -> tuple[int, ...]:
    """Give the bytes of data of each file."""
    return tuple(max((entry.end for entry in shard.header.entries), default=0) for shard in source.shards)


def _records(source: Checkpoint, config: bytes | None) -> Iterator[tuple[str, bytes]]:
    if config is not None:
        yield CONFIG, config
    if source.index_path is not None and source.index_bytes is not None:
        yield f"{INDEX}{source.index_path.name}", source.index_bytes
    for shard in source.shards:
        yield f"{HEADER}{relative_name(shard, source)}", shard.header.raw


def _bytes_entry(name: str, data: bytes) -> _Entry:
    return _Entry(name, TensorSpec("U8", (len(data),)), MemorySource(data), 0)


def _kept(source: Checkpoint, names: Collection[str]) -> Iterator[_Entry]:
    for name in sorted(names, key=natural):
        yield _Entry(name, source.tensors[name].logical(), *source.source_of(name))


def _passed(source: Checkpoint) -> Iterator[_Entry]:
    """Tensors that a file has and the index takes from another one."""
    over = {(each.file, each.name) for each in source.shadowed}
    for number, shard in enumerate(source.shards):
        for entry in shard.header.entries:
            if (shard.path, entry.name) in over:
                spec, start = TensorSpec(entry.dtype, entry.shape), shard.header.data_start + entry.start
                yield _Entry(f"{PASSED}{number}/{entry.name}", spec, shard.source, start)
