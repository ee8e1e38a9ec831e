"""How a text's tokens are pooled, as 1_Pooling/config.json says it: by name, or by a flag for each way.

Format: the Sentence Transformers documentation, `Pooling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.running.pooling import PoolingMode

# In the order in which several are put side by side.
_FLAGS: dict[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_NAMES: dict[str, PoolingMode] = {**{mode: mode for mode in _FLAGS.values()}, "mean_sqrt_len_tokens": "mean_sqrt_len"}
_WIDTHS = ("embedding_dimension", "word_embedding_dimension")


@dataclass(frozen=True, slots=True)
class Pooling:
    """The ways to pool, side by side; whether a prompt's tokens count; the width of a token, where it is said."""

    modes: tuple[PoolingMode, ...]
    include_prompt: bool = True
    width: int | None = None
    file: str | None = None


def read_pooling(path: Path) -> Pooling:
    """Read the settings of a pooling step; raises ConfigError for ways that are none, unknown, or contradict."""
    content = read_json_object(path)
    named, flagged = _named(content, path), _flagged(content, path)
    if named and flagged and set(named) != set(flagged):
        raise _wrong(path, f"pooling_mode says {', '.join(named)}, and its flags say {', '.join(flagged)}")
    if not (named or flagged):
        raise _wrong(path, "chooses no pooling (none)")
    include = content.get("include_prompt", True)
    if not isinstance(include, bool):
        raise ConfigError(f"include_prompt is {include!r}", expected="true or false", file=path, field="include_prompt")
    return Pooling(named or flagged, include, _width(content, path), str(path))


def _named(content: Mapping[str, Any], path: Path) -> tuple[PoolingMode, ...]:
    found = content.get("pooling_mode")
    if found is None:
        return ()
    listed = found if isinstance(found, list) else [found]
    unknown = [name for name in listed if not (isinstance(name, str) and name in _NAMES)]
    if unknown or not listed:
        raise _wrong(path, f"pooling_mode is {found!r}")
    return tuple(_NAMES[name] for name in listed)


def _flagged(content: Mapping[str, Any], path: Path) -> tuple[PoolingMode, ...]:
    flags = {name: value for name, value in content.items() if name.startswith("pooling_mode_")}
    for name, value in flags.items():
        if not isinstance(value, bool) or (value and name not in _FLAGS):
            raise _wrong(path, f"{name} is {value!r}", name)
    return tuple(mode for name, mode in _FLAGS.items() if flags.get(name))


def _width(content: Mapping[str, Any], path: Path) -> int | None:
    for field in _WIDTHS:
        value = content.get(field)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{field} is {value!r}", expected="the width of a token", file=path, field=field)
            return value
    return None


def _wrong(path: Path, seen: str, field: str = "pooling_mode") -> ConfigError:
    return ConfigError(
        seen,
        expected=f"one or more of {', '.join(_NAMES)}, or flags such as {next(iter(_FLAGS))}",
        hint="correct the file, or choose the pooling yourself",
        file=path,
        field=field,
    )
