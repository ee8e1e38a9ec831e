"""What is installed for a config's model type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import PluginError

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture


def installed_architecture(config: Mapping[str, Any]) -> Architecture | None:
    """Give the architecture for a config; None where none is installed for its model type, or several are."""
    from weightloom.plugins.discovery.manager import PluginManager

    try:
        return PluginManager().architecture(str(config.get("model_type")))
    except PluginError:
        return None
