"""`weightloom surgery check FILE PATH`: what surgery would change, from headers alone."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_reading
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome
from weightloom.runtime.terminal.text import plural

if TYPE_CHECKING:
    from weightloom.engine.surgery import Change


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a surgery file")
    parser.add_argument("path", metavar="PATH", help="a directory, an index or a file")
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Check the file against a checkpoint; an operation that does not fit is an error."""
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.inspecting.reading import planned
    from weightloom.runtime.surgery.surgery import operated_plan
    from weightloom.runtime.surgery.surgery_file import read_surgery

    surgery = read_surgery(Path(args.file))
    with planned(args.path, wish_of(args)) as found:
        found.plan.check()
        changes = operated_plan(found, surgery).changes
        count = len(found.plan.params)
    data = {
        "command": "surgery check",
        "file": args.file,
        "path": args.path,
        "changes": [_plain(each) for each in changes],
    }
    tensors = len({(each.side, each.name) for each in changes})
    remarks = f"{plural(tensors, 'tensor')} would change, of {plural(count, 'parameter')}; nothing was read but headers"
    return Outcome(FINE, data, "\n".join(_lines(changes)), remarks)


def _plain(change: Change) -> dict[str, object]:
    dtype, shape = change.spec.dtype, list(change.spec.shape)
    place, side = change.place, change.side
    return {
        "operation": change.operation,
        "at": place,
        "side": side,
        "name": change.name,
        "dtype": dtype,
        "shape": shape,
        "becomes": None if change.made is None else list(change.made.shape),
    }


def _lines(changes: Iterable[Change]) -> Iterator[str]:
    for each in changes:
        side = "" if each.side == "parameter" else f" ({each.side})"
        yield f"{each.operation:<12} {each.name}{side}  {each.spec}{_after(each)}"


def _after(change: Change) -> str:
    if change.made is None:
        return " goes"
    return "" if change.made == change.spec else f" -> {list(change.made.shape)}"


SURGERY_CHECK = Command("check", "say what a surgery file would change in a checkpoint", add_arguments, run)
