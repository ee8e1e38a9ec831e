"""Which of several architectures a config itself chooses: `"weightloom": {"architecture": "PACKAGE:NAME"}`."""

from __future__ import annotations

from collections.abc import Mapping

from weightloom.engine.errors import ConfigError
from weightloom.runtime.configs.config import Config

_SECTION, _FIELD = "weightloom", "architecture"


def settled_architecture(config: Config, asked: str | None) -> str | None:
    """Give the architecture that was asked for, else the one that the config names, if it does.

    Raises ConfigError for a section that is not as it must be.
    """
    section = config.values.get(_SECTION)
    if asked is not None or section is None:
        return asked
    found = section.get(_FIELD) if isinstance(section, Mapping) else None
    if not isinstance(found, str):
        raise ConfigError(
            f"{_SECTION} is {section!r}",
            expected=f'{{"{_FIELD}": "PACKAGE:NAME"}}',
            hint=f"remove it, and choose with --{_FIELD}",
            file=config.path,
            field=f"{_SECTION}.{_FIELD}",
        )
    return found
