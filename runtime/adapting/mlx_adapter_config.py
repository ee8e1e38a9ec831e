"""The adapter_config.json of mlx-lm: all arguments of a training run, of which the kind and the scale count.

Format: ml-explore/mlx-lm 0.32, `tuner/utils.py`. What the factors are, the weights' file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.config import read_config
from weightloom.runtime.configs.finite import is_finite

_HINTS = {
    "dora": "fuse it with mlx-lm",
    "full": "it holds whole weights: load it as a checkpoint",
}


def read_scale(path: Path) -> float:
    """Read what B @ A is multiplied by; raises ConfigError for another kind than lora, or without a scale."""
    if not path.exists():
        raise ConfigError(
            "there is no adapter_config.json beside the adapter's weights",
            expected="a file that gives lora_parameters with a scale, which is not to be guessed",
            file=path,
        )
    content = read_config(path).values
    kind = content.get("fine_tune_type", "lora")
    if kind != "lora":
        hint = _HINTS.get(kind) if isinstance(kind, str) else None
        raise _bad("fine_tune_type", kind, "lora", path, hint)
    return _scale(content, path)


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
