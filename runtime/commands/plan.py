"""`weightloom plan PATH`: the mapping by shape of name, and what does not fit."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_reading, add_text_only, count
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome
from weightloom.runtime.terminal.text import aligned, plural, size

if TYPE_CHECKING:
    from weightloom.engine.plan import Plan
    from weightloom.engine.planning.describe import Row
    from weightloom.runtime.inspecting.reading import Planned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file")
    parser.add_argument("--limit", type=count, metavar="N", help="show the first N rows of the table")
    parser.add_argument("--html", metavar="FILE", help="write it as a page too: one file, to open in a browser")
    parser.add_argument("--overwrite", action="store_true", help="with --html: replace FILE")
    parser.add_argument("--all", action="store_true", help="list every name that does not fit, not a few of each kind")
    add_text_only(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Plan the checkpoint; exit code 1 when it would not load."""
    from weightloom.engine.planning.verdict import problem
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.inspecting.reading import planned
    from weightloom.runtime.inspecting.summary import choice_json, choice_lines

    if args.html is not None:
        from weightloom.engine.disk.single_file import check_ending, check_free

        check_ending(args.html, ".html", ".htm")
        check_free(args.html, overwrite=args.overwrite)
    with planned(args.path, wish_of(args)) as found:
        plan = found.plan
        error = found.target.obstacle or problem(plan, strict=True)
        data = {**plan.to_json(), "command": "plan", "path": args.path, "choice": choice_json(found.choice)}
        data["error"] = error.to_json() if error else None
        data["target"] = str(found.target)
        data["html"] = args.html
        if args.html is not None:
            _write_page(found, args)
        head = [*choice_lines(found.choice), f"target      {found.target}", ""]
        verdict = _verdict(plan, found.choice.layout, loads=error is None)
        report = [*plan.report.lines(None)] if args.all else [*plan.report.lines()]
        misfits = [*report, ""] if report else []
        lines = [*head, *_table(plan, args.limit), *misfits, *verdict]
        complaint = f"error: {error}" if error else ""
        remarks = "" if args.html is None else f"written as a page: {args.html}"
        return Outcome(AT_FAULT if error else FINE, data, "\n".join(lines), remarks, complaint)


def _write_page(found: Planned, args: argparse.Namespace) -> None:
    from weightloom.engine.disk.single_file import write_single
    from weightloom.runtime.picture.page import page
    from weightloom.runtime.picture.planned import picture_of

    write_single(args.html, page(picture_of(found, args.path)).encode(), overwrite=args.overwrite)


def _table(plan: Plan, limit: int | None) -> Iterator[str]:
    rows = plan.table()
    shown = rows if limit is None else rows[:limit]
    yield from aligned([("TENSORS", "PARAMETERS", "GROUPS", "OPS", "SPEC"), *map(_cells, shown)], right=(2,))
    if len(shown) < len(rows):
        yield f"... and {plural(len(rows) - len(shown), 'more row')}"
    yield ""


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    targets = "(same)" if row.targets == row.sources else ", ".join(row.targets)
    spec = row.source_spec if row.source_spec == row.target_spec else f"{row.source_spec} -> {row.target_spec}"
    return ", ".join(row.sources), targets, f"x{row.count}", ", ".join(row.ops) or "-", spec


def _verdict(plan: Plan, layout: str, loads: bool) -> Iterator[str]:
    from weightloom.runtime.opening.opening import GGUF

    back = "no, GGUF is read and not written" if layout == GGUF else "yes" if plan.invertible else "no"
    yield f"would load: {'yes' if loads else 'no'}"
    yield f"can be written back byte for byte: {back}"
    made = plural(len(plan.params), "parameter")
    yield f"{plural(len(plan.sources), 'tensor')} -> {made}, {size(plan.nbytes)}; loading takes {size(plan.peak_bytes)}"


PLAN = Command("plan", "show how each tensor is mapped, and what is missing, unexpected or lossy", add_arguments, run)
