"""The sizes that a config gives for the tensors that pruning cuts: where they stand, and with new values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weightloom.engine.errors import ConfigError

_NESTED = "text_config"


def level(config: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Give the part of a config that has a field: its top, else its text_config; raises ConfigError for neither."""
    nested = config.get(_NESTED)
    for part in (config, nested):
        if isinstance(part, Mapping) and part.get(field) is not None:
            return part
    raise ConfigError(f"the config has no {field}", expected=f"{field}, a number, to prune by", field=field)


def count(config: Mapping[str, Any], field: str, default: int | None = None) -> int:
    """Give a positive number of a config; raises ConfigError for what is none."""
    value = config.get(field)
    if value is None and default is not None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{field} is {value!r}", expected="a positive number", field=field)
    return value


def with_level(config: Mapping[str, Any], field: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Give the config with other values beside a field, where it stands."""
    part = level(config, field)
    if part is config:
        return {**config, **changes}
    return {**config, _NESTED: {**part, **changes}}
