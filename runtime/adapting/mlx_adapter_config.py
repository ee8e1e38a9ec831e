"""The adapter_config.json of mlx-lm: all arguments of a training run, of which the kind and the scale count.

Format: ml-explore/mlx-lm 0.32, `tuner/utils.py`. What the factors are, the weights' file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.config import read_config
from weightloom.runtime.configs.finite import is_finite

_DECOMPOSED: Mapping[Any, bool] = {"lora": False, "dora": True}
_WHOLE = "it holds whole weights: load it as a checkpoint"


@dataclass(frozen=True, slots=True)
class MlxAdapterConfig:
    """What B @ A is multiplied by, and whether every change has magnitudes too (DoRA)."""

    scale: float
    decomposed: bool


def read_mlx_config(path: Path) -> MlxAdapterConfig:
    """Read an adapter_config.json; raises ConfigError for another kind than lora or dora, or without a scale."""
    if not path.exists():
        raise ConfigError(
            "there is no adapter_config.json beside the adapter's weights",
            expected="a file that gives lora_parameters with a scale, which is not to be guessed",
            file=path,
        )
    content = read_config(path).values
    kind = content.get("fine_tune_type", "lora")
    if not isinstance(kind, str) or kind not in _DECOMPOSED:
        raise _bad("fine_tune_type", kind, " or ".join(_DECOMPOSED), path, _WHOLE if kind == "full" else None)
    return MlxAdapterConfig(_scale(content, path), _DECOMPOSED[kind])


def _scale(content: Mapping[str, Any], path: Path) -> float:
    found = content.get("lora_parameters")
    if not isinstance(found, Mapping):
        raise _bad("lora_parameters", found, "an object with a scale", path)
    scale = found.get("scale")
    if not is_finite(scale):
        raise _bad("lora_parameters.scale", scale, "the scale that it was trained with", path)
    return float(scale)


def _bad(field: str, value: object, expected: str, path: Path, hint: str | None = None) -> ConfigError:
    said = "absent or null" if value is None else repr(value)
    return ConfigError(f"{field} is {said}", expected=expected, hint=hint, file=path, field=field)
