"""`weightloom plugins`: all that packages offer, by kind and distribution, and what of it cannot be used."""

from __future__ import annotations

import argparse

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""


def run(args: argparse.Namespace) -> Outcome:
    """Import every plugin; exit code 1 when one cannot be used or two claim one model type."""
    from weightloom.runtime.extras import need_mlx
    from weightloom.runtime.inspecting.installed import installed

    need_mlx()
    found = installed()
    rows = [
        {"kind": each.kind, "distribution": each.distribution, "plugin": each.value, "names": list(each.names)}
        for each in found.offers
    ]
    text = "\n".join(
        f"{each.kind:<12}  {each.distribution}  {each.value}  {', '.join(each.names)}" for each in found.offers
    )
    data = {"command": "plugins", "plugins": rows, "problems": list(found.problems), "notes": list(found.notes)}
    complaint = "\n".join([*found.problems, *(f"note: {note}" for note in found.notes)])
    return Outcome(AT_FAULT if found.problems else FINE, data, text, complaint=complaint)


PLUGINS = Command("plugins", "list the plugins that are installed, and what is wrong with any", add_arguments, run)
