"""The steps that sentence-transformers' files put after a model: modules.json, or a folder `1_Pooling` without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.judging.steps import Step, Steps
from weightloom.runtime.configs.side_bytes import read_side_bytes

LIST = "modules.json"
POOLING = "1_Pooling"
SETTINGS = "config.json"


def read_steps(folder: Path) -> Steps | None:
    """Read which steps follow a model, in order; None where the files say nothing of any.

    Raises ConfigError for a list that is none, and for a step whose folder leads out of the model's, else as
    `read_side_bytes` does.
    """
    path = folder / LIST
    listed = read_side_bytes(path)
    if listed is not None:
        return Steps(tuple(_step(entry, path) for entry in _entries(listed, path)), str(path))
    settings = folder / POOLING / SETTINGS
    there = settings.is_file() or settings.is_symlink()
    return Steps((Step("Transformer", ""), Step("Pooling", POOLING)), str(settings)) if there else None


def _entries(raw: bytes, path: Path) -> list[Mapping[str, Any]]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be read as JSON: {error}", expected="a list of steps", file=path) from error
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ConfigError("is not a list of objects", expected="a list of steps", file=path)
    return found


def _step(entry: Mapping[str, Any], path: Path) -> Step:
    kind, place = entry.get("type"), entry.get("path", "")
    for field, value in (("type", kind), ("path", place)):
        if not isinstance(value, str):
            raise ConfigError(f"a step's {field} is {value!r}", expected="a text", file=path, field=field)
    parts = Path(str(place)).parts
    if Path(str(place)).is_absolute() or ".." in parts or "\0" in str(place):
        raise ConfigError(f"a step is at {place!r}", expected="a folder of the model", file=path, field="path")
    return Step(str(kind).rpartition(".")[2], str(place))
