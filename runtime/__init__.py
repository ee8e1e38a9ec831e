"""The everyday door: inspect, plan, verify and convert checkpoints, from Python and from the command line.

The names below are imported on first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weightloom.runtime.inspecting import inspect as inspect
    from weightloom.runtime.inspection import Inspection as Inspection

_HOME = {"inspect": "inspecting", "Inspection": "inspection"}

__all__ = ["Inspection", "inspect"]

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
