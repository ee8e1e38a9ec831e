"""Whether a checkpoint has a vision tower: by its config and the names in its headers, and which of them decided."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import ConfigError

# Words that published modules for pictures have in a part of their name.
_VISION = re.compile(r"(?:^|\.)[^.]*(?:vision|visual|vpm)[^.]*\.")


@dataclass(frozen=True, slots=True)
class Vision:
    """The decision: whether there is a vision tower, the facts that decided, in words, and the deciding field."""

    present: bool
    why: str
    field: str = "vision_config"

    def __str__(self) -> str:
        return f"{'a vision tower' if self.present else 'text only'}: {self.why}"


# Of a config that does not speak of vision, and a checkpoint that has none.
UNSAID = Vision(False, "vision_config is absent")


def vision_of(config: Mapping[str, Any], names: Iterable[str], file: str | None = None) -> Vision:
    """Decide from config.json's content and the tensors' names.

    There is no tower where `language_model_only` is true, `vision_config` is absent, null or empty, or no tensor is
    one of vision. Raises ConfigError, naming the field and `file`, where one of the two is of another type.
    """
    only, section = config.get("language_model_only"), config.get("vision_config")
    _refuse("language_model_only", only, only is None or isinstance(only, bool), "true or false", file)
    _refuse("vision_config", section, section is None or isinstance(section, Mapping), "an object or null", file)
    tensor = min((name for name in names if is_vision(name)), default=None)
    if only:
        return Vision(False, "language_model_only is true" + _though(tensor), "language_model_only")
    if not section:
        state = "absent" if "vision_config" not in config else "null" if section is None else "empty"
        return Vision(False, f"vision_config is {state}{_though(tensor)}")
    if tensor is None:
        return Vision(False, "there is a vision_config, and no tensor of a vision tower")
    return Vision(True, f"vision_config is filled, and there are tensors such as {tensor}")


def is_vision(name: str) -> bool:
    """Say whether a tensor is part of a vision tower, by the parts of its name."""
    return _VISION.search(name) is not None


def _though(tensor: str | None) -> str:
    return f", though there are tensors such as {tensor}" if tensor else ""


def _refuse(field: str, value: object, fine: bool, expected: str, file: str | None) -> None:
    if not fine:
        raise ConfigError(
            f"{field} is {value!r}", expected=expected, hint="correct config.json", file=file, field=field
        )
