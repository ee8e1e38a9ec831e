"""Code that comes with a checkpoint: never run, and said so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.os_errors import storage_error
from weightloom.engine.show import shown

_FIELDS = ("auto_map", "model_file")


def ignored_code(folder: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which fields of a config point at code, and which Python files lie beside the weights.

    Raises StorageError where the system refuses to look.
    """
    return (*_pointers(config), *_files(folder))


def _pointers(config: Mapping[str, Any]) -> Iterator[str]:
    for field in _FIELDS:
        if config.get(field):
            yield f"{field} of the config is ignored, code of a checkpoint is never run: {shown(config[field])}"


def _files(folder: Path) -> Iterator[str]:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix == ".py")
    except OSError as error:
        raise storage_error("list", folder, error) from error
    if names:
        yield f"ignored, code of a checkpoint is never run: {', '.join(names)}"
