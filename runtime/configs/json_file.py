"""Small JSON files beside the weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.side_bytes import read_side_bytes


def read_json_object(path: Path) -> Mapping[str, Any]:
    """Read a JSON object; {} where there is no file.

    Raises ConfigError for a file that is not one, else as `read_side_bytes` does.
    """
    raw = read_side_bytes(path)
    if raw is None:
        return {}
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"cannot be read as JSON: {error}", expected="a JSON object", hint="correct or remove the file", file=path
        ) from error
    if not isinstance(found, dict):
        raise ConfigError(f"holds a {type(found).__name__}", expected="a JSON object", file=path)
    return found
