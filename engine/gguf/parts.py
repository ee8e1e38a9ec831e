"""The files of a GGUF model: one, or all parts of a split one (NAME-00001-of-00003.gguf)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from weightloom.engine.checkpoints.discovery import is_directory
from weightloom.engine.errors import CheckpointError
from weightloom.engine.os_errors import storage_error
from weightloom.engine.show import listed

SUFFIX = ".gguf"
_PART = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL | re.ASCII)


def find_parts(path: Path) -> tuple[Path, ...]:
    """Give the files of the model at a path, in order: of a file, of any part, or of a directory with one model.

    Raises CheckpointError, listing them, when parts are missing or a directory has no model or several; StorageError
    where the system refuses to look.
    """
    return _parts_of(_only_model(path) if is_directory(path) else path)


def _parts_of(path: Path) -> tuple[Path, ...]:
    match = _PART.fullmatch(path.name)
    if match is None:
        return (path,)
    count = int(match["count"])
    names = [f"{match['stem']}-{number:05d}-of-{match['count']}{SUFFIX}" for number in range(1, count + 1)]
    if path.name not in names:
        raise CheckpointError(f"a part {match['number']} of {count}", expected=f"1 to {count}", file=path)
    parts = tuple(path.with_name(name) for name in names)
    missing = [part.name for part in parts if not part.exists()]
    if missing:
        raise CheckpointError(
            f"parts are missing: {listed(missing)}",
            expected=f"all {count} parts in one directory",
            hint="incomplete download? Get the missing files, then open it again",
            file=path,
        )
    return parts


def _only_model(folder: Path) -> Path:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX) and not name.startswith("."))
    except OSError as error:
        raise storage_error("list", folder, error) from error
    models = {_model_of(name): name for name in reversed(names)}
    if len(models) != 1:
        raise CheckpointError(
            f"several GGUF models in one directory: {listed(sorted(models.values()))}" if models else f"no *{SUFFIX}",
            expected="one model",
            hint="give the file that is meant" if models else "check the path",
            file=folder,
        )
    return folder / next(iter(models.values()))


def _model_of(name: str) -> str:
    match = _PART.fullmatch(name)
    return name if match is None else f"{match['stem']} of {match['count']}"
