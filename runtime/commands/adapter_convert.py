"""`weightloom adapter convert SRC DST`: an adapter in another format, or written again as it was."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_reading
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome
from weightloom.runtime.terminal.text import plural

if TYPE_CHECKING:
    from weightloom.runtime.adapting.writing import AdapterWritten


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("source", metavar="SRC", help="the directory of an adapter that PEFT or mlx-lm wrote")
    parser.add_argument("target", metavar="DST", help="a directory, new or empty")
    parser.add_argument("--format", choices=("peft", "mlx", "original"), default="original", help="original: as read")
    parser.add_argument("--base", metavar="PATH", help="the model that it is for; else the one that its config names")
    parser.add_argument("--overwrite", action="store_true", help="replace the adapter in DST; other files stay")
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Convert the adapter; of the base only headers are read."""
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.converting.adapter_conversion import convert_adapter
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    done = convert_adapter(
        args.source, args.target, args.format, base=args.base, overwrite=args.overwrite, wish=wish_of(args)
    )
    data = {
        "command": "adapter convert",
        "source": args.source,
        "target": args.target,
        "format": args.format,
        "files": [str(path) for path in done.files],
        "tensors": done.tensors,
        "notes": done.notes,
    }
    return Outcome(FINE, data, "\n".join(_lines(done)), "\n".join(f"note: {note}" for note in done.notes))


def _lines(done: AdapterWritten) -> Iterator[str]:
    yield f"{plural(done.tensors, 'tensor')} written"
    yield from (f"  {path}" for path in done.files)


ADAPTER_CONVERT = Command("convert", "write an adapter in the format of PEFT or mlx-lm", add_arguments, run)
