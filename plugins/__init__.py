"""Architectures as plugins: what an author imports, lazily."""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture as Architecture
    from weightloom.plugins.architecture import SubModel as SubModel
    from weightloom.plugins.binding import bind as bind
    from weightloom.plugins.binding import param_specs as param_specs
    from weightloom.plugins.manager import PluginManager as PluginManager
    from weightloom.plugins.sources import Bundle as Bundle
    from weightloom.plugins.specs import hookimpl as hookimpl

_MODULE_OF = {
    "Architecture": "architecture",
    "Bundle": "sources",
    "PluginManager": "manager",
    "SubModel": "architecture",
    "bind": "binding",
    "hookimpl": "specs",
    "param_specs": "binding",
}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)
