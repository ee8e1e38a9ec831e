"""The commands with their arguments and options, as the parsers have them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from docs.generating.tables import cell, table
from weightloom.runtime.cli import build_parser

_OF_ALL = ("json", "quiet", "debug")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of commands, in order; a family of commands gives those in it."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not found:
        yield parser
    for family in found:
        for child in family.choices.values():
            yield from parsers(child)


def text() -> str:
    """Give a section for each command."""
    return "\n".join(_section(parser) for parser in parsers(build_parser()))


def _section(parser: argparse.ArgumentParser) -> str:
    rows = [_row(parser, action) for action in parser._actions if action.dest not in ("help", *_OF_ALL)]
    usage = textwrap.fill(
        " ".join(parser.format_usage().removeprefix("usage: ").split()),
        90,
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    head = f"## {parser.prog}\n\n{cell(parser.description or '')}\n\n```text\n{usage}\n```\n\n"
    return f"{head}{table(('argument', 'says'), rows)}\n\n{cell(parser.epilog or '')}\n"


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str]:
    """Give the spellings of an argument, and its help with the choices where these are not its metavar."""
    formatter = parser._get_formatter()
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    value = (
        f" {formatter._format_args(action, action.dest.upper())}" if action.option_strings and action.nargs != 0 else ""
    )
    choices = f" One of {', '.join(map(str, action.choices))}." if action.choices and action.metavar else ""
    return f"`{names}{value}`", cell(formatter._expand_help(action) + choices if action.help else choices)
