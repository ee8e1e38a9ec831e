"""`weightloom rules watch FILE PATH`: plan again after each save of a rule file, and show what changed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_choosing, add_text_only
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.runtime.authoring.looks import Look
    from weightloom.runtime.authoring.subject import Subject


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a rule file")
    parser.add_argument("path", metavar="PATH", help="a directory, an index or a file; its headers are read once")
    parser.add_argument("--arch", metavar="NAME", help="the model type whose parameters are wanted (the config's)")
    parser.add_argument("--alone", action="store_true", help="without the rules that ship for the family")
    add_text_only(parser)
    add_choosing(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Watch until interrupted; a line of JSON for each save where JSON is asked for."""
    from dataclasses import replace

    from weightloom.runtime.authoring.subject import open_subject
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.terminal.failure import failed
    from weightloom.runtime.terminal.printing import SCHEMA, put

    try:
        with open_subject(args.path, wish_of(args), args.arch) as subject:
            for look in _looks(Path(args.file), subject.alone.plain if args.alone else subject.plain):
                facts = {"schema": SCHEMA, "command": "rules watch", "file": args.file, **look.to_json()}
                if not put((json.dumps(facts) if args.json else "\n".join(look.text())) + "\n"):
                    return Outcome(FINE, {})
    except KeyboardInterrupt as error:
        return replace(failed(error), data={})  # what was printed is whole: an object a line
    return Outcome(FINE, {})


def _looks(file: Path, subject: Subject) -> Iterator[Look]:
    from time import perf_counter

    from weightloom.runtime.authoring.looks import look_of
    from weightloom.runtime.authoring.replan import replan
    from weightloom.runtime.authoring.saves import saves

    before = None
    for text in saves(file):
        start = perf_counter()
        found = replan(text, str(file), subject)
        yield look_of(found, before, text, perf_counter() - start)
        before = before if found.plan is None else found.plan.report


RULES_WATCH = Command("watch", "plan again after each save of a rule file, and show what changed", add_arguments, run)
