"""Where a config says what the text model is: at its top, or in the section of its text model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SECTIONS = ("text_config", "llm_config", "language_config")


def text_parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the config, then its sections of a text model."""
    yield config
    for name in SECTIONS:
        section = config.get(name)
        if isinstance(section, Mapping):
            yield section
