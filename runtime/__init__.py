"""The everyday door: load, run, save, inspect and convert checkpoints, from Python and from the command line.

The names below are imported on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weightloom.runtime.embedding import embed as embed
    from weightloom.runtime.generation import generate as generate
    from weightloom.runtime.inspecting import inspect as inspect
    from weightloom.runtime.inspection import Inspection as Inspection
    from weightloom.runtime.loading import load as load
    from weightloom.runtime.model import LoadedModel as LoadedModel
    from weightloom.runtime.saving import save as save

_HOME = {
    "Inspection": "inspection",
    "LoadedModel": "model",
    "embed": "embedding",
    "generate": "generation",
    "inspect": "inspecting",
    "load": "loading",
    "save": "saving",
}

__all__ = ["Inspection", "LoadedModel", "embed", "generate", "inspect", "load", "save"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name the first time it is asked for."""
        if name in _HOME:
            from importlib import import_module

            value = globals()[name] = getattr(import_module(f"weightloom.runtime.{_HOME[name]}"), name)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return __all__
