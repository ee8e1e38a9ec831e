"""The index of a checkpoint of several files: a JSON object whose `weight_map` gives each tensor its file.

File names are data from others: they are plain relative paths that stay inside the index's directory. A file
itself may be a symbolic link to anywhere, as in a hub's cache.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from weightloom.engine.checkpoints.file_source import FileSource
from weightloom.engine.checkpoints.strict_json import parse_regular, strings_in
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import shown

INDEX_SUFFIX = ".safetensors.index.json"
INDEX_NAME = f"model{INDEX_SUFFIX}"
MAX_INDEX_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Index:
    """A checked index. `raw` is its content verbatim, `files` the shards' paths, sorted, `owners` tensor -> path."""

    path: Path
    raw: bytes
    files: tuple[Path, ...]
    owners: Mapping[str, Path]


def read_index(path: Path) -> Index:
    """Read and check an index file. Raises CheckpointError, and StorageError where reading fails."""
    source = FileSource(path)
    try:
        if source.size > MAX_INDEX_BYTES:
            raise _bad(path, f"an index of {source.size} bytes", f"at most {MAX_INDEX_BYTES}")
        raw = bytearray(source.size)
        source.read_into(0, memoryview(raw))
    finally:
        source.close()
    return parse_index(bytes(raw), path)


def parse_index(raw: bytes, path: Path) -> Index:
    """Check an index's content; of the disk, only the directories that its file names go through are looked at.

    Raises CheckpointError, naming the field, for anything but a `weight_map` of texts to safe file names.
    """
    weight_map = parse_regular(raw, _strings, file=str(path), what="the index").get("weight_map")
    if type(weight_map) is not dict or not weight_map:
        raise _bad(path, f"the weight_map {shown(weight_map)}", "an object: tensor name to file name")
    for tensor, name in weight_map.items():
        if type(name) is not str:
            raise _bad(path, f"the file {shown(name)} for tensor {shown(tensor)}", "a file name", tensor)
    paths = _shard_paths(set(weight_map.values()), path)
    owners = {tensor: paths[name] for tensor, name in weight_map.items()}
    return Index(path, raw, tuple(sorted(set(paths.values()))), owners)


def _strings(values: dict[str, object]) -> int:
    """Count the texts in a sound index: two for each tensor, and what else there is."""
    weight_map = values.get("weight_map")
    others = strings_in({name: value for name, value in values.items() if name != "weight_map"})
    return others + 1 + 2 * len(weight_map) if isinstance(weight_map, dict) else strings_in(values)


def _shard_paths(names: Collection[str], index: Path) -> dict[str, Path]:
    """Give each file name its path. Two spellings of one path give equal paths."""
    folder = index.parent
    paths = {}
    for name in names:
        if not _is_plain(name) or not _stays_inside(folder / name, folder):
            expected = "a relative path that stays inside the index's directory"
            raise _bad(index, f"the file name {shown(name)}", expected)
        paths[name] = folder / name
    return paths


def _is_plain(name: str) -> bool:
    """Say whether a name is relative and without `..`, to whatever system it was written for."""
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    rooted = PurePosixPath(name).anchor or PureWindowsPath(name).anchor
    return bool(PurePosixPath(name).name) and not rooted and ".." not in parts and "\0" not in name


def _stays_inside(path: Path, folder: Path) -> bool:
    parent = path.parent
    return parent == folder or Path(os.path.realpath(parent)).is_relative_to(os.path.realpath(folder))


def _bad(path: Path, seen: str, expected: str, tensor: str | None = None) -> CheckpointError:
    return CheckpointError(
        f"the index has {seen}",
        expected=expected,
        hint="the index is damaged or was written by a faulty program: download or write it again",
        file=path,
        tensor=tensor,
        field="weight_map",
    )
