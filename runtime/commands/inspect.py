"""`weightloom inspect PATH`: what a checkpoint is, from headers and config alone."""

from __future__ import annotations

import argparse

from weightloom.runtime.terminal.arguments import add_reading, add_text_only, count
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file")
    parser.add_argument("--estimate-memory", action="store_true", help="plan it too, and say what a load takes")
    parser.add_argument("--context", type=count, metavar="N", help="with it: the caches after N tokens")
    parser.add_argument("--batch", type=count, default=1, metavar="B", help="with it: of B sequences at once (1)")
    parser.add_argument("--dtype", metavar="NAME", help="with it: parameters cast to bfloat16, float16 or float32")
    parser.add_argument("--quantize", metavar="RECIPE", help="with it: parameters packed by this recipe, or 'dense'")
    add_text_only(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Inspect the checkpoint."""
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.inspecting.inspecting import inspect

    found = inspect(
        args.path,
        estimate_memory=args.estimate_memory,
        context=args.context,
        batch=args.batch,
        dtype=args.dtype,
        quantize=args.quantize,
        wish=wish_of(args),
    )
    return Outcome(FINE, {"command": "inspect", **found.to_json()}, str(found))


INSPECT = Command("inspect", "say what a checkpoint is: architecture, tensors, dtypes, sizes", add_arguments, run)
