"""hf_quant_config.json: what ModelOpt says of its weights beside config.json, or in its place.

Source: ModelOpt's exports, `{"producer": ..., "quantization": {"quant_algo": ..., "exclude_modules": [...]}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.quantization import SECTION
from weightloom.runtime.configs.config import read_config

if TYPE_CHECKING:
    from weightloom.runtime.opening.opening import Opened

NAME = "hf_quant_config.json"
METHOD = "modelopt"
# The names that a field has in the file, and in the config.
_FIELDS = (("quant_algo", "quant_algo"), ("exclude_modules", "ignore"))


@dataclass(frozen=True)
class Section:
    """What is said of quantized modules, {} for nothing, and the file that says it."""

    values: Mapping[str, Any]
    file: Path

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def quantization_section(opened: Opened) -> Section:
    """Give the config's section of a vendor's format, or ModelOpt's own file's where the config has none.

    Raises ConfigError where both are there and disagree, CheckpointError for a file that is no JSON object.
    """
    config = opened.config.values if opened.config else {}
    inner = config.get("text_config")
    stated = config.get(SECTION) or (inner.get(SECTION) if isinstance(inner, Mapping) else None)
    place = opened.config.path if opened.config else opened.path
    beside = _beside(opened)
    if not stated and beside is not None:
        return beside
    # What names no method is MLX's own.
    found = Section(stated if isinstance(stated, Mapping) and "quant_method" in stated else {}, place)
    if beside is not None and found.values.get("quant_method") == METHOD:
        _check_agreement(found.values, beside)
    return found


def needed_beside(opened: Opened) -> dict[str, bytes | Path]:
    """Give the file, by its name, where it alone says how the weights are packed: it goes where they go as they are."""
    found = quantization_section(opened)
    return {NAME: found.file} if found.file.name == NAME else {}


def _beside(opened: Opened) -> Section | None:
    path = opened.folder / NAME
    if opened.container or not path.is_file():
        return None
    found = read_config(path).values.get("quantization")
    if not isinstance(found, Mapping) or found.get("quant_algo") is None:
        return None
    return Section({**found, "quant_method": METHOD}, path)


def _check_agreement(stated: Mapping[str, Any], beside: Section) -> None:
    for here, there in _FIELDS:
        one, other = _comparable(beside.values.get(here)), _comparable(stated.get(there))
        if one is not None and other is not None and one != other:
            raise ConfigError(
                f"{here} is {beside.values[here]!r}, and {SECTION}.{there} of the config is {stated[there]!r}",
                expected="one account of how the weights are packed",
                hint="remove the file that belongs to other weights, or its section",
                file=beside.file,
                field=here,
            )


def _comparable(value: object) -> object:
    return frozenset(map(str, value)) if isinstance(value, list) else value
