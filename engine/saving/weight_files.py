"""Which files of a directory hold a checkpoint's weights: what a save into it replaces."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from weightloom.engine.checkpoints.discovery import KEPT_NAME, SINGLE_NAME, SUFFIX
from weightloom.engine.checkpoints.index import INDEX_SUFFIX
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.disk.target import is_filled
from weightloom.engine.errors import UsageError
from weightloom.engine.os_errors import storage_error
from weightloom.engine.show import listed

_OWN_NAME = re.compile(r"model(-\d+-of-\d+)?\.safetensors")


def weight_files(directory: Path, files: Files = FILES) -> Collection[str]:
    """Name the indexes, the files that they name, and files of our own naming; without any, all loose weights.

    The file of tensors that were kept beside the old weights is one of them.

    Raises StorageError where the system refuses to look.
    """
    names = files.names(directory)
    indexes = [name for name in names if name.endswith(INDEX_SUFFIX)]
    found = {name for name in names if _OWN_NAME.fullmatch(name)}
    for name in indexes:
        found |= _indexed(directory / name)
    loose = () if indexes or found else (name for name in names if name.endswith(SUFFIX))
    kept = (name for name in names if name == KEPT_NAME)
    return sorted({*found, *indexes, *loose, *kept})


def can_be_found(names: Sequence[str]) -> bool:
    """Say whether opening a directory with these weight files and no index reads them all."""
    plain = all(name.endswith(SUFFIX) and not name.startswith(".") for name in names)
    return plain and (len(names) == 1 or SINGLE_NAME not in names)


def refuse_mixing(directory: Path, names: Collection[str], files: Files = FILES) -> None:
    """Refuse to put loose weight files beside others that stay: a reader would take all of them together."""
    if SINGLE_NAME in names or not is_filled(directory, files):
        return
    others = {name for name in files.names(directory) if name.endswith(SUFFIX) and not name.startswith(".")}
    staying = sorted(others - set(names) - set(weight_files(directory, files)))
    if staying:
        raise UsageError(
            f"{listed(staying)} would be read together with the files to be written ({listed(names)})",
            expected="a directory without other weight files, or a save with an index",
            hint="choose another directory, or give a shard size, so that new files and an index are made",
            file=directory / staying[0],
        )


def _indexed(path: Path) -> set[str]:
    """The shards that an index names; an index that is no index names none."""
    try:
        shards = set(json.loads(path.read_bytes())["weight_map"].values())
        return {name for name in shards if isinstance(name, str) and ".." not in Path(name).parts}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, FileNotFoundError, IsADirectoryError):
        return set()
    except OSError as error:
        raise storage_error("read", path, error) from error
