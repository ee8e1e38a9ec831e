"""`weightloom rules test FILE --names NAMES`: what becomes of each name, and which rule did it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome
from weightloom.runtime.terminal.text import plural

if TYPE_CHECKING:
    from weightloom.runtime.inspecting.fates import Fate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a rule file")
    parser.add_argument("--names", required=True, metavar="NAMES", help="a text file with a name a line; - is stdin")
    parser.add_argument("--layout", metavar="NAME", help="the layout (hf where there is one)")
    parser.add_argument("--config", metavar="FILE", help="a config.json that answers the rules' conditions")


def run(args: argparse.Namespace) -> Outcome:
    """Try the rules on the names; exit code 1 when a converter cannot work on them."""
    from weightloom.runtime.choosing.resolution import user_rules
    from weightloom.runtime.configs.config import read_config
    from weightloom.runtime.inspecting.fates import fates

    rules = user_rules(args.file, args.layout)
    config = read_config(Path(args.config)).values if args.config else {}
    found = fates(_names(args.names), rules, config)
    bad = [fate for fate in found if fate.problem]
    changed = sum(bool(fate.acts) for fate in found)
    lines = [line for fate in found for line in _lines(fate)]
    data = {"command": "rules test", "file": args.file, "names": [{**asdict(f), "results": f.results} for f in found]}
    remarks = f"{plural(len(found), 'name')}, {changed} changed, {len(bad)} with a problem"
    return Outcome(AT_FAULT if bad else FINE, data, "\n".join(lines), remarks)


def _names(source: str) -> list[str]:
    from weightloom.engine.errors import CheckpointError
    from weightloom.engine.os_errors import storage_error

    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise storage_error("read", Path(source), error) from error
    try:
        lines = raw.decode().splitlines()
    except UnicodeDecodeError as error:
        seen = f"the names are not UTF-8: {error.reason} at byte {error.start}"
        raise CheckpointError(seen, expected="text, a name a line", file=source) from error
    return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


def _lines(fate: Fate) -> Iterator[str]:
    yield f"{fate.name} -> {', '.join(fate.results) or '(nothing: kept, and saved back)'}"
    yield from (f"    {act.kind}: {', '.join(act.results) or '(nothing)'}  [{act.rule}]" for act in fate.acts)
    if fate.problem:
        yield f"    problem: {fate.problem}"


RULES_TEST = Command("test", "show what becomes of names under a rule file", add_arguments, run)
