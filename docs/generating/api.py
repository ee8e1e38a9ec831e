"""The public names of each package with their docstrings, by the folder or file that they come from."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial

from weightloom.engine import WeightloomError

PACKAGES = (
    "weightloom",
    "weightloom.engine",
    "weightloom.rules",
    "weightloom.plugins",
    "weightloom.plugins.layers",
    "weightloom.plugins.configs",
    "weightloom.plugins.quantization",
    "weightloom.plugins.testing",
    "weightloom.runtime",
)


def names(package: str) -> list[str]:
    """Give the public names of a package: those that it lists, else those that are made in it."""
    module = importlib.import_module(package)
    made = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == package)
    return list(getattr(module, "__all__", None) or (name for name in made if not name.startswith("_")))


def text(package: str) -> str:
    """Give the names of a package, those of one origin below its title."""
    by_origin: dict[str, list[str]] = {}
    for name in names(package):
        by_origin.setdefault(_origin(package, name), []).append(name)
    sections = ((_title(origin), found) for origin, found in by_origin.items())
    return "\n".join(
        "\n".join((title, *(_entry(package, name) for name in found))) for title, found in sorted(sections)
    )


def _origin(package: str, name: str) -> str:
    """Give the folder or file below the package that a value is made in; nothing for one of another package's type."""
    found = getattr(importlib.import_module(package), name)
    made_in = found.__module__ if callable(found) else type(found).__module__
    return ".".join(made_in.split(".")[: package.count(".") + 2]) if made_in.startswith("weightloom.") else ""


def _title(origin: str) -> str:
    """Give the first sentence about an origin as a heading, up to its colon."""
    about = inspect.getdoc(importlib.import_module(origin)) or "" if origin else "Values"
    return f"## {re.split(r'[.:] |[.]?$', about.partition(chr(10))[0])[0]}\n"


def _entry(package: str, name: str) -> str:
    found = getattr(importlib.import_module(package), name)
    if inspect.isclass(found) and issubclass(found, WeightloomError) and found is not WeightloomError:
        # Its arguments are those of all errors.
        lines = [f".. py:exception:: {package}.{name}", "", f"   {found.__doc__}"]
    elif inspect.isclass(found):
        lines = [f".. autoclass:: {package}.{name}", "   :members:"]
    elif inspect.isfunction(found):
        lines = [f".. autofunction:: {package}.{name}"]
    else:
        value = [f"   :value: {found!r}"] if isinstance(found, str) else []
        lines = [f".. py:data:: {package}.{name}", f"   :type: {type(found).__name__}", *value]
    return "\n".join(("```{eval-rst}", *lines, "```", ""))


PARTS: Mapping[str, Callable[[], str]] = {package: partial(text, package) for package in PACKAGES}
