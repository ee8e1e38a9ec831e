"""`weightloom verify PATH`: load, save, compare."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_adapter, add_reading, add_surgery
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome
from weightloom.runtime.terminal.text import plural, size

if TYPE_CHECKING:
    from weightloom.runtime.converting.adapter_base import AdapterVerified
    from weightloom.runtime.converting.verification import FilePair, Verification


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file")
    parser.add_argument("--workdir", metavar="DIR", help="where to write (a new directory in it, removed afterwards)")
    add_adapter(parser, "to hold against the model and to write again, too")
    add_surgery(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Verify; exit code 1 when anything differs."""
    from weightloom.engine.errors import UsageError
    from weightloom.runtime.adapting.adapter_argument import all_weighted
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.converting.adapter_base import verify_adapters
    from weightloom.runtime.converting.verification import verify
    from weightloom.runtime.extras import need_mlx
    from weightloom.runtime.inspecting.reading import planned
    from weightloom.runtime.inspecting.summary import choice_json
    from weightloom.runtime.opening.opening import GGUF
    from weightloom.runtime.surgery.surgery import asked_surgery, operated_plan
    from weightloom.runtime.terminal.progress import progress_bar
    from weightloom.runtime.terminal.space import need_space

    surgery, adapted = asked_surgery(args.surgery), all_weighted(args.adapter)
    with planned(args.path, wish_of(args)) as found:
        found.plan.check()
        if surgery is not None:
            operated_plan(found, surgery).plan.inverse()  # raises NotInvertible, naming the operation
        if found.choice.layout == GGUF:
            raise UsageError(
                "GGUF files are read and not written",
                expected="safetensors files",
                hint="convert with --layout hf, then verify what was written",
                file=args.path,
            )
        need_mlx()
        workdir = Path(args.workdir or tempfile.gettempdir())
        need_space(workdir, sum(shard.source.size for shard in found.checkpoint.shards))
        with tempfile.TemporaryDirectory(prefix="weightloom-", dir=workdir) as folder:
            bar = partial(progress_bar, quiet=args.quiet)
            adapters = tuple(verify_adapters(adapted, found, Path(folder), bar))
            result = verify(found.plan, Path(folder), bar)
        data = {
            "command": "verify",
            "path": args.path,
            "choice": choice_json(found.choice),
            **result.to_json(),
            "adapters": [each.to_json() for each in adapters],
        }
        code = FINE if result.equal and all(each.result.equal for each in adapters) else AT_FAULT
        lines = (*_lines(result), *(line for each in adapters for line in _of_adapter(each)))
        return Outcome(code, data, "\n".join(lines), "\n".join(_remarks(result)))


def _of_adapter(each: AdapterVerified) -> Iterator[str]:
    yield f"{each.path}: {plural(each.changes, 'parameter')} changed, {each.replaced} replaced"
    yield from _lines(each.result)


def _lines(result: Verification) -> Iterator[str]:
    from weightloom.runtime.converting.verification import MAX_DIFFERENCES

    equal = result.tensors - len(result.differences)
    yield f"{equal} of {plural(result.tensors, 'tensor')} byte-equal ({size(result.nbytes)})"
    shown = result.differences[:MAX_DIFFERENCES]
    yield from (f"  {each.name}: {each.how}" for each in shown)
    if len(shown) < len(result.differences):
        yield f"  ... and {len(result.differences) - len(shown)} more (--json lists all)"
    yield from (_differing(file) for file in result.files if not file.equal)


def _differing(file: FilePair) -> str:
    return f"{file.name}: sha256 {file.source}, written {file.written or 'not at all'}"


def _remarks(result: Verification) -> Iterator[str]:
    yield from (f"{file.name}: sha256 {file.source}, the same as written" for file in result.files if file.equal)
    if result.dropped:
        yield f"{plural(result.dropped, 'tensor')} dropped by a rule, and saved back"
    if result.tied:
        yield f"{plural(result.tied, 'parameter')} tied"


VERIFY = Command("verify", "load a checkpoint, save it to a temporary place and compare every byte", add_arguments, run)
