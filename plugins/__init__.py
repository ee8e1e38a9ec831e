"""Architectures as plugins: what an author imports, lazily."""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture as Architecture
    from weightloom.plugins.architecture import SubModel as SubModel
    from weightloom.plugins.discovery.manager import PluginManager as PluginManager
    from weightloom.plugins.discovery.sources import Bundle as Bundle
    from weightloom.plugins.modules.binding import bind as bind
    from weightloom.plugins.modules.binding import param_specs as param_specs
    from weightloom.plugins.specs import hookimpl as hookimpl

_MODULE_OF = {
    "Architecture": "architecture",
    "Bundle": "discovery.sources",
    "PluginManager": "discovery.manager",
    "SubModel": "architecture",
    "bind": "modules.binding",
    "hookimpl": "specs",
    "param_specs": "modules.binding",
}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)
