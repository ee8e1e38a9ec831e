"""`weightloom convert SRC DST`: another layout, dtype or shard size, disk to disk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.runtime.terminal.arguments import (
    add_adapter,
    add_losses,
    add_quantizing,
    add_reading,
    add_surgery,
    byte_count,
)
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome
from weightloom.runtime.terminal.text import plural, size

if TYPE_CHECKING:
    from weightloom.runtime.converting.conversion import Converted


_DTYPES = {"bf16": "BF16", "f16": "F16", "f32": "F32"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("source", metavar="SRC", help="a directory, an index or a file")
    parser.add_argument("target", metavar="DST", help="a directory, new or empty")
    layouts = "original (as read), canonical (the parameters), or a name that `rules show` lists"
    parser.add_argument("--layout", default="original", metavar="NAME", help=f"the layout to write: {layouts}")
    parser.add_argument("--dtype", choices=sorted(_DTYPES), help="cast float tensors")
    parser.add_argument(
        "--max-shard-size",
        type=byte_count,
        metavar="SIZE",
        help="cut shards, such as 5GB (where anything changes: 5GB)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the checkpoint in DST; other files stay")
    add_adapter(parser, "to fuse into the weights")
    add_losses(parser)
    add_surgery(parser)
    add_quantizing(parser)
    add_reading(parser, layout="--from-layout")


def run(args: argparse.Namespace) -> Outcome:
    """Convert the checkpoint."""
    from weightloom.runtime.adapting.adapter_argument import all_weighted
    from weightloom.runtime.adapting.losses import LossPolicy
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.converting.conversion import Order, convert
    from weightloom.runtime.quantizing.wish import ordered_quantizing
    from weightloom.runtime.surgery.surgery import asked_surgery
    from weightloom.runtime.terminal.progress import progress_bar

    dtype = _DTYPES.get(args.dtype)
    order = Order(
        Path(args.target),
        args.layout,
        dtype,
        args.max_shard_size,
        args.overwrite,
        asked_surgery(args.surgery),
        all_weighted(args.adapter),
        LossPolicy(args.when_lost, args.max_loss),
        ordered_quantizing(args.quantize, dequantize=args.dequantize, requantize=args.requantize),
        args.measure,
    )
    with progress_bar("convert", args.quiet) as progress:
        done = convert(Path(args.source), order, wish_of(args), progress)
    data = {
        "command": "convert",
        "source": args.source,
        "target": args.target,
        "layout": args.layout,
        "dtype": dtype,
        "surgery": None if order.surgery is None else str(order.surgery.path),
        "quantize": args.quantize,
        **asdict(done),
        "files": [str(path) for path in done.files],
    }
    return Outcome(FINE, data, "\n".join(_lines(done)), "\n".join(_remarks(done)))


def _lines(done: Converted) -> Iterator[str]:
    yield f"{plural(done.tensors, 'tensor')} written, {size(done.nbytes)}"
    yield from (f"  {path}" for path in done.files)
    yield from (f"{rounding}" for rounding in done.rounding)


def _remarks(done: Converted) -> Iterator[str]:
    if done.side_files:
        yield f"side files copied: {', '.join(done.side_files)}"
    yield from (f"left behind: {each.name} ({each.why})" for each in done.left_behind)
    if done.kept:
        yield f"kept in {KEPT_NAME}: {plural(len(done.kept), 'tensor')}: {_some(done.kept)}"
    yield from (f"fused: {loss}" for loss in done.losses)
    if done.left_out:
        yield f"not in this layout: {plural(len(done.left_out), 'tensor')}: {_some(done.left_out)}"
    yield from (f"note: {note}" for note in done.notes)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


CONVERT = Command("convert", "write a checkpoint in another layout, dtype or shard size", add_arguments, run)
