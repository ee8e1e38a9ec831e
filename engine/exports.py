"""Public names of a package, each imported from its module the first time that it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def exporting(package: str, module_of: Mapping[str, str]) -> Callable[[str], object]:
    """Give the `__getattr__` of a package whose names live in its modules; AttributeError for any other name."""

    def find(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
