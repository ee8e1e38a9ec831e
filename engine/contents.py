"""What a checkpoint's shards hold together: each tensor once, from the shard that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.errors import CheckpointError
from weightloom.engine.index import Index
from weightloom.engine.shard import Shard
from weightloom.engine.show import listed, shown
from weightloom.engine.source import ByteSource
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
    tensors: dict[str, TensorSpec] = {}
    logical: dict[str, TensorSpec] = {}
    kinds: dict[tuple[str, tuple[int, ...]], TensorSpec] = {}
    places: dict[str, tuple[ByteSource, int]] = {}
    shadowed: list[Shadowed] = []
    for shard in shards:
        path, source, data_start = shard.path, shard.source, shard.header.data_start
        for name, dtype, shape, start, _ in shard.header.entries:
            winner = owners.get(name)
            if winner is not None and path is not None and winner != path:
                shadowed.append(Shadowed(name, path, winner))
                continue
            if name in tensors:
                raise _in_two_files(name, places[name][0].name, shard.name)
            offset = data_start + start
            tensors[name] = TensorSpec(dtype, shape, path, None if path is None else offset)
            places[name] = (source, offset)
            kind = (dtype, shape)
            logical[name] = kinds.get(kind) or kinds.setdefault(kind, TensorSpec(dtype, shape))
    if index:
        _check_promises(index, tensors)
    notes = (*_unlisted_notes(index, tensors), *_shadowed_notes(shadowed))
    return Contents(tensors, logical, places, tuple(shadowed), notes)


def merged_metadata(shards: Sequence[Shard]) -> dict[str, str]:
    """Join the shards' metadata; for a key in several, the first shard counts."""
    merged: dict[str, str] = {}
    for shard in reversed(shards):
        merged |= shard.header.metadata or {}
    return merged


def _check_promises(index: Index, tensors: Mapping[str, TensorSpec]) -> None:
    lacking = [name for name in index.owners if name not in tensors]
    if lacking:
        file = index.owners[lacking[0]]
        raise CheckpointError(
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


def _unlisted_notes(index: Index | None, tensors: Mapping[str, TensorSpec]) -> tuple[str, ...]:
    unlisted = [name for name in tensors if name not in index.owners] if index else []
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
