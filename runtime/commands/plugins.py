"""`weightloom plugins`: every plugin by distribution, and those that cannot be used."""

from __future__ import annotations

import argparse

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""


def run(args: argparse.Namespace) -> Outcome:
    """Import every plugin; exit code 1 when one cannot be used or two claim one model type."""
    from weightloom.engine.errors import PluginError
    from weightloom.plugins.manager import PluginManager
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    manager = PluginManager()
    clashes: list[str] = []
    served: dict[tuple[str, str], list[str]] = {}
    for offer in manager.offers():
        served.setdefault((offer.distribution, offer.value), []).append(offer.model_type)
        try:
            if len(manager.architectures(offer.model_type)) > 1:
                manager.architecture(offer.model_type)
        except PluginError as error:
            clashes.append(error.seen)
    problems = [*(f"{p.offer.value} ({p.offer.distribution}): {p.why}" for p in manager.problems), *sorted({*clashes})]
    rows = [{"distribution": d, "plugin": v, "model_types": types} for (d, v), types in sorted(served.items())]
    text = "\n".join(f"{row['distribution']}  {row['plugin']}  {', '.join(row['model_types'])}" for row in rows)
    data = {"command": "plugins", "plugins": rows, "problems": problems, "notes": manager.notes}
    complaint = "\n".join([*problems, *(f"note: {note}" for note in manager.notes)])
    return Outcome(AT_FAULT if problems else FINE, data, text, complaint=complaint)


PLUGINS = Command("plugins", "list the plugins that are installed, and what is wrong with any", add_arguments, run)
