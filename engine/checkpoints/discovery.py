"""Which files make up the checkpoint at a path. Reads names and the index, never a shard."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.checkpoints.foreign import FOREIGN_SUFFIXES
from weightloom.engine.checkpoints.index import INDEX_NAME, INDEX_SUFFIX, Index, read_index
from weightloom.engine.errors import CheckpointError
from weightloom.engine.os_errors import storage_error
from weightloom.engine.show import listed

SUFFIX = ".safetensors"
SINGLE_NAME = f"model{SUFFIX}"
# Lies beside weights whose layout has no room for what it keeps; never one of their shards.
KEPT_NAME = f"weightloom-kept{SUFFIX}"


@dataclass(frozen=True, slots=True)
class Found:
    """The shards in order, the index that names them if one does, and weight files beside them that are not read."""

    files: tuple[Path, ...]
    index: Index | None = None
    stray: tuple[Path, ...] = ()


def find_files(path: Path) -> Found:
    """Find the shards of a file, an index file, or a directory.

    In a directory: the index's shards; else `model.safetensors`; else all `*.safetensors`, sorted by name. Of
    several indexes, `model.safetensors.index.json` counts. Names that start with a dot are left alone.

    Raises CheckpointError when nothing is there, nothing of it can be read, the index is unsound, or files that
    it names are missing; StorageError where the system refuses to look.
    """
    if is_directory(path):
        return _in_directory(path)
    if path.name.endswith(".json"):
        return _indexed(read_index(path))
    return Found((path,))


def is_directory(path: Path) -> bool:
    """Say whether a path is a directory, not a file. Raises CheckpointError where nothing is."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise CheckpointError(
            "no such file or directory",
            expected="a directory with *.safetensors, an index, or one such file",
            hint="check the path; names on a hub must be downloaded first",
            file=path,
        ) from error
    except OSError as error:
        raise storage_error("look at", path, error) from error


def _in_directory(folder: Path) -> Found:
    names = _names(folder)
    index = _choose_index(folder, names)
    if index is not None:
        return _indexed(read_index(folder / index))
    weights = _weights(names)
    if not weights:
        raise _nothing(folder, names)
    if SINGLE_NAME in weights:
        stray = tuple(folder / name for name in weights if name != SINGLE_NAME)
        return Found((folder / SINGLE_NAME,), stray=stray)
    return Found(tuple(folder / name for name in weights))


def _indexed(index: Index) -> Found:
    missing = [path for path in index.files if not _is_there(path)]
    if missing:
        raise CheckpointError(
            f"files that the index names are missing: {listed(map(str, missing), len(missing))}",
            expected=f"all {len(index.files)} files of the index",
            hint="incomplete download? Get the missing files, then open it again",
            file=index.path,
        )
    beside = (index.path.parent / name for name in _weights(_names(index.path.parent)))
    known = frozenset(index.files)
    return Found(index.files, index, tuple(path for path in beside if path not in known))


def _choose_index(folder: Path, names: Sequence[str]) -> str | None:
    indexes = [name for name in names if name.endswith(INDEX_SUFFIX) and not name.startswith(".")]
    if INDEX_NAME in indexes:
        return INDEX_NAME
    if len(indexes) > 1:
        raise CheckpointError(
            f"several indexes and no {INDEX_NAME}: {listed(indexes)}",
            expected="one index",
            hint="give the path of the index that is meant",
            file=folder,
        )
    return indexes[0] if indexes else None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise storage_error("list", folder, error) from error


def _weights(names: Sequence[str]) -> list[str]:
    return [name for name in names if name.endswith(SUFFIX) and not name.startswith(".") and name != KEPT_NAME]


def _is_there(path: Path) -> bool:
    """Say whether a path leads to something; what cannot be looked at is for the opening to refuse."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _nothing(folder: Path, names: Sequence[str]) -> CheckpointError:
    foreign = [name for name in names if name.endswith(FOREIGN_SUFFIXES)]
    there = f"it holds {listed(names, 20)}" if names else "it is empty"
    return CheckpointError(
        f"no *{SUFFIX} in this directory: {there}",
        expected=f"{INDEX_NAME}, {SINGLE_NAME}, or other *{SUFFIX} files",
        hint=f"{listed(foreign)}: these formats are not read here; convert to safetensors first"
        if foreign
        else "check the path",
        file=folder,
    )
