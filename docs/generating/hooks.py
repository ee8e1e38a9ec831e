"""The hooks with their signatures, and the groups of entry points."""

from __future__ import annotations

import inspect

from docs.generating.tables import plain, table
from weightloom.plugins.specs import INTERFACE, Specs
from weightloom.runtime.inspecting.installed import KINDS


def hooks() -> list[str]:
    """Give the names of all hooks."""
    return [name for name in vars(Specs) if name.startswith("weightloom_")]


def signature(name: str) -> str:
    """Give a hook's arguments and what it gives."""
    return str(inspect.signature(getattr(Specs, name))).replace("'", "")


def text() -> str:
    """Give a section for each hook."""
    return f"The present interface is version {INTERFACE}.\n\n" + "\n".join(map(_section, hooks()))


def groups() -> str:
    """Give the groups of entry points, and what each brings."""
    return table(("group", "brings"), ((f"`{group}`", kind) for kind, group in KINDS.items()))


def _section(name: str) -> str:
    about = inspect.getdoc(getattr(Specs, name)) or ""
    return f"## {name}\n\n```python\n@hookimpl\ndef {name}{signature(name)}: ...\n```\n\n{plain(about)}\n"
