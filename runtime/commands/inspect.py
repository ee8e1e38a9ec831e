"""`weightloom inspect PATH`: what a checkpoint is, from headers and config alone."""

from __future__ import annotations

import argparse

from weightloom.runtime.terminal.arguments import add_reading
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file")
    parser.add_argument("--estimate-memory", action="store_true", help="plan it too, and say what a load takes")
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Inspect the checkpoint."""
    from weightloom.runtime.inspecting.inspecting import inspect
    from weightloom.runtime.inspecting.reading import wish_of

    found = inspect(args.path, estimate_memory=args.estimate_memory, wish=wish_of(args))
    return Outcome(FINE, {"command": "inspect", **found.to_json()}, str(found))


INSPECT = Command("inspect", "say what a checkpoint is: architecture, tensors, dtypes, sizes", add_arguments, run)
