"""`weightloom arch [MODEL_TYPE]`: the architectures that are installed, what each takes, and where it comes from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.plugins.architecture import Architecture
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.runtime.inspecting.served import Served


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("model_type", nargs="?", help="one model type, in full")


def run(args: argparse.Namespace) -> Outcome:
    """List the architectures by model type, or describe those of one, importing what offers them.

    Of several for one model type, the one comes first that is taken where the files say no more.
    """
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    manager = PluginManager()
    return _listed(manager) if args.model_type is None else _described(manager, args.model_type)


def _listed(manager: PluginManager) -> Outcome:
    from weightloom.plugins.discovery.format_manager import FormatManager
    from weightloom.runtime.inspecting.served import served

    found = tuple(served(manager))
    methods = FormatManager().methods()
    head = ("model type", "task", "layouts", "offered by", "verified by")
    cells = [head, *(_cells(each) for each in found)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.append(f"quantized forms, of any of them: {', '.join(methods)}")
    complaint = "\n".join(f"{each.offer.value} ({each.offer.distribution}): {each.why}" for each in manager.problems)
    data = {"command": "arch", "architectures": [_row(each) for each in found], "quantized": list(methods)}
    return Outcome(FINE, data, "\n".join(lines), complaint=complaint)


def _cells(found: Served) -> tuple[str, ...]:
    made = found.architecture
    return (found.model_type, made.task, ", ".join(found.layouts), made.source, made.verified or "-")


def _row(found: Served) -> dict[str, Any]:
    made = found.architecture
    return {
        "model_type": found.model_type,
        "name": made.name,
        "task": made.task,
        "by_request": list(made.by_request),
        "layouts": list(found.layouts),
        "verified": made.verified,
        "plugin": found.offer.value,
        "distribution": found.offer.distribution,
    }


def _described(manager: PluginManager, model_type: str) -> Outcome:
    from weightloom.runtime.inspecting.served import layouts_of

    found = manager.architecture(model_type)
    served = manager.find(model_type) or model_type
    layouts = layouts_of(served)
    others = [each for each in manager.architectures(served) if each != found]
    data = {
        "command": "arch",
        "architecture": _json(found, layouts),
        "others": [_json(each, layouts) for each in others],
    }
    return Outcome(FINE, data, "\n\n".join("\n".join(_lines(each, layouts)) for each in (found, *others)))


def _json(found: Architecture, layouts: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": found.name,
        "source": found.source,
        "model_types": list(found.model_types),
        "class_names": list(found.class_names),
        "task": found.task,
        "by_request": list(found.by_request),
        "layouts": list(layouts),
        "verified": found.verified,
        "adapters": found.adapters if isinstance(found.adapters, str) else list(found.adapters),
        "rules": [rule.title() for rule in found.rules],
    }


def _lines(found: Architecture, layouts: tuple[str, ...]) -> Iterator[str]:
    adapters = found.adapters if isinstance(found.adapters, str) else ", ".join(found.adapters)
    yield f"name         {found.name}"
    yield f"from         {found.source}"
    yield f"model types  {', '.join(found.model_types)}"
    yield f"classes      {', '.join(found.class_names)}"
    asked = f" (by request: {', '.join(found.by_request)})" if found.by_request else ""
    yield f"task         {found.task}{asked}"
    yield f"layouts      {', '.join(layouts)}"
    if found.verified:
        yield f"verified by  {found.verified}"
    yield f"adapters     {adapters}"
    yield from (f"own rule     {rule.summary()}" for rule in found.rules)


ARCH = Command("arch", "list the architectures that are installed, or describe one", add_arguments, run)
