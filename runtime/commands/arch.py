"""`weightloom arch [MODEL_TYPE]`: the architectures that are installed, and where each comes from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model_type", nargs="?", help="one model type, in full")


def run(args: argparse.Namespace) -> Outcome:
    """List model types without importing a plugin; describe one by importing those that offer it.

    Of several for one model type, the one comes first that is taken where the files say no more.
    """
    from weightloom.plugins.discovery.manager import PluginManager

    manager = PluginManager()
    if args.model_type is None:
        offers = manager.offers()
        rows = [{"model_type": o.model_type, "plugin": o.value, "distribution": o.distribution} for o in offers]
        text = "\n".join(f"{o.model_type:<20}  {o.value}  ({o.distribution})" for o in offers)
        return Outcome(FINE, {"command": "arch", "architectures": rows}, text)
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    found = manager.architecture(args.model_type)
    served = manager.find(args.model_type) or args.model_type
    others = [each for each in manager.architectures(served) if each != found]
    data = {"command": "arch", "architecture": _json(found), "others": [_json(each) for each in others]}
    return Outcome(FINE, data, "\n\n".join("\n".join(_lines(each)) for each in (found, *others)))


def _json(found: Architecture) -> dict[str, Any]:
    return {
        "name": found.name,
        "source": found.source,
        "model_types": list(found.model_types),
        "class_names": list(found.class_names),
        "task": found.task,
        "by_request": list(found.by_request),
        "adapters": found.adapters if isinstance(found.adapters, str) else list(found.adapters),
        "rules": [rule.title() for rule in found.rules],
    }


def _lines(found: Architecture) -> Iterator[str]:
    adapters = found.adapters if isinstance(found.adapters, str) else ", ".join(found.adapters)
    yield f"name         {found.name}"
    yield f"from         {found.source}"
    yield f"model types  {', '.join(found.model_types)}"
    yield f"classes      {', '.join(found.class_names)}"
    asked = f" (by request: {', '.join(found.by_request)})" if found.by_request else ""
    yield f"task         {found.task}{asked}"
    yield f"adapters     {adapters}"
    yield from (f"own rule     {rule.title()}" for rule in found.rules)


ARCH = Command("arch", "list the architectures that are installed, or describe one", add_arguments, run)
