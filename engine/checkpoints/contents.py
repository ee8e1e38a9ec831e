"""What a checkpoint's shards hold together: each tensor once, from the shard that counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.checkpoints.header_columns import Columns
from weightloom.engine.checkpoints.index import Index
from weightloom.engine.checkpoints.placed import Placed, Places
from weightloom.engine.checkpoints.shard import Shard
from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import listed, shown
from weightloom.engine.spec import TensorSpec


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A tensor that `file` holds and the index takes from `winner`: kept for saving back, never used."""

    name: str
    file: Path
    winner: Path


@dataclass(frozen=True, slots=True)
class Contents:
    """Each tensor's spec and the place of its first byte, in the files' order; what is set aside, and remarks.

    `logical` are the specs without a place on disk, one object for all tensors of one dtype and shape.
    """

    tensors: Mapping[str, TensorSpec]
    logical: Mapping[str, TensorSpec]
    places: Mapping[str, tuple[ByteSource, int]]
    shadowed: tuple[Shadowed, ...]
    notes: tuple[str, ...]


def collect(shards: Sequence[Shard], index: Index | None) -> Contents:
    """Put the shards' headers together; where an index names a tensor's file, only that one counts.

    A tensor that the index leaves out is used and noted.

    Raises CheckpointError for a tensor in two files of which no index chooses one, and for one that the index
    promises and its file lacks.
    """
    owners: Mapping[str, Path] = index.owners if index else {}
    logical: dict[str, TensorSpec] = {}
    known: dict[tuple[str | None, tuple[int, ...]], TensorSpec] = {}
    sources: dict[str, ByteSource] = {}
    offsets: dict[str, int] = {}
    shadowed: list[Shadowed] = []
    unlisted: list[str] = []
    for shard in shards:
        columns, passed = _counting(shard, owners)
        unlisted += [name for name in columns.names if name not in owners] if owners else ()
        shadowed += passed
        if not logical.keys().isdisjoint(columns.names):
            name = next(name for name in columns.names if name in logical)
            raise _in_two_files(name, sources[name].name, shard.name)
        kinds = {id(spec): known.setdefault((spec.dtype, spec.shape), spec) for spec in _distinct(columns.specs)}
        logical |= zip(columns.names, [kinds[id(spec)] for spec in columns.specs], strict=True)
        sources |= dict.fromkeys(columns.names, shard.source)
        offsets |= zip(columns.names, map(shard.header.data_start.__add__, columns.starts), strict=True)
    if index and len(index.owners) != len(logical) - len(unlisted):
        raise _broken_promise(index, [name for name in index.owners if name not in logical])
    notes = (*_unlisted_notes(unlisted), *_shadowed_notes(shadowed))
    files = {id(shard.source): shard.path for shard in shards if shard.path is not None}
    places = Places(sources, offsets)
    return Contents(Placed(logical, places, files), logical, places, tuple(shadowed), notes)


def _counting(shard: Shard, owners: Mapping[str, Path]) -> tuple[Columns, list[Shadowed]]:
    """Part a shard's tensors by whether the index takes them from another file."""
    columns, path = shard.header.columns, shard.path
    winners = list(map(owners.get, columns.names)) if owners else []
    # Paths are slow to compare, and here mostly one object.
    if path is None or set(map(id, winners)) <= {id(path), id(None)}:
        return columns, []
    counts = [winner is None or winner == path for winner in winners]
    passed = zip(columns.names, winners, counts, strict=True)
    shadowed = [Shadowed(name, path, winner) for name, winner, own in passed if winner is not None and not own]
    return columns.only(counts), shadowed


def _distinct(specs: Sequence[TensorSpec]) -> Iterable[TensorSpec]:
    """Give each object once: there are few, and values are slow to compare."""
    return dict(zip(map(id, specs), specs, strict=True)).values()


def merged_metadata(shards: Sequence[Shard]) -> dict[str, str]:
    """Join the shards' metadata; for a key in several, the first shard counts."""
    merged: dict[str, str] = {}
    for shard in reversed(shards):
        merged |= shard.header.metadata or {}
    return merged


def _broken_promise(index: Index, lacking: Sequence[str]) -> CheckpointError:
    file = index.owners[lacking[0]]
    return CheckpointError(
        f"tensors that the index names are not in their files: {listed(lacking)}; the first should be in {file}",
        expected="an index and files that belong together",
        hint="files of two downloads or versions may be mixed: get all of them again",
        file=index.path,
        tensor=lacking[0],
        field="weight_map",
    )


def _in_two_files(name: str, first: str, second: str) -> CheckpointError:
    return CheckpointError(
        f"tensor {shown(name)} is in two files: {first} and {second}",
        expected="each tensor in one file, or an index that says which one counts",
        hint="open only the files that belong together",
        file=second,
        tensor=name,
    )


def _unlisted_notes(unlisted: Sequence[str]) -> tuple[str, ...]:
    if not unlisted:
        return ()
    return (f"{len(unlisted)} tensors are in the files and not in the index; they are used: {listed(unlisted)}",)


def _shadowed_notes(shadowed: Sequence[Shadowed]) -> tuple[str, ...]:
    by_file: dict[Path, list[str]] = {}
    for one in shadowed:
        by_file.setdefault(one.file, []).append(one.name)
    return tuple(
        f"{len(names)} tensors of {file} are not used, the index takes them from other files: {listed(names)}"
        for file, names in by_file.items()
    )
