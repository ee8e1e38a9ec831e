"""The command line: choose the command, run it, print its outcome, give its exit code.

Commands import what they need when they run, so that `--help` and a mistyped option cost next to nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from weightloom.runtime.commands.adapter_convert import ADAPTER_CONVERT
from weightloom.runtime.commands.arch import ARCH
from weightloom.runtime.commands.convert import CONVERT
from weightloom.runtime.commands.embed import EMBED
from weightloom.runtime.commands.explain import EXPLAIN
from weightloom.runtime.commands.generate import GENERATE
from weightloom.runtime.commands.inspect import INSPECT
from weightloom.runtime.commands.new_plugin import NEW_PLUGIN
from weightloom.runtime.commands.plan import PLAN
from weightloom.runtime.commands.plugins import PLUGINS
from weightloom.runtime.commands.rerank import RERANK
from weightloom.runtime.commands.rules_lint import RULES_LINT
from weightloom.runtime.commands.rules_new import RULES_NEW
from weightloom.runtime.commands.rules_schema import RULES_SCHEMA
from weightloom.runtime.commands.rules_show import RULES_SHOW
from weightloom.runtime.commands.rules_test import RULES_TEST
from weightloom.runtime.commands.rules_watch import RULES_WATCH
from weightloom.runtime.commands.studio import STUDIO
from weightloom.runtime.commands.surgery_check import SURGERY_CHECK
from weightloom.runtime.commands.verify import VERIFY
from weightloom.runtime.terminal.arguments import Parser, add_output
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.failure import failed
from weightloom.runtime.terminal.outcome import Outcome
from weightloom.runtime.terminal.printing import deliver
from weightloom.runtime.terminal.termination import hearing_termination

COMMANDS = (INSPECT, PLAN, EXPLAIN, VERIFY, CONVERT, GENERATE, EMBED, RERANK, ARCH, PLUGINS, STUDIO, NEW_PLUGIN)
RULES_COMMANDS = (RULES_NEW, RULES_LINT, RULES_SHOW, RULES_TEST, RULES_WATCH, RULES_SCHEMA)
SURGERY_COMMANDS = (SURGERY_CHECK,)
ADAPTER_COMMANDS = (ADAPTER_CONVERT,)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code (0, 1, 2, 3, 4, 70, 130 or 143); only `--help` and `--version` exit."""
    given = list(sys.argv[1:] if argv is None else argv)
    outcome = _outcome(given)
    return deliver(outcome, as_json="--json" in given, quiet="--quiet" in given)


def build_parser() -> Parser:
    """Make the parser of all commands; each leaves its function in `run`."""
    parser = Parser(prog="weightloom", description="Checkpoint conversion rules for MLX, both ways.")
    parser.add_argument("--version", action=_Version, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add(commands, COMMANDS)
    _add_family(commands, "rules", "write and check rule files", RULES_COMMANDS)
    _add_family(commands, "adapter", "write adapters", ADAPTER_COMMANDS)
    _add_family(commands, "surgery", "change tensors on the way into a model", SURGERY_COMMANDS)
    return parser


def _add_family(
    parsers: argparse._SubParsersAction[Parser], name: str, help_text: str, commands: Iterable[Command]
) -> None:
    family = parsers.add_parser(name, help=help_text, description=help_text.capitalize() + ".")
    _add(family.add_subparsers(metavar="COMMAND", required=True), commands)


def _add(parsers: argparse._SubParsersAction[Parser], commands: Iterable[Command]) -> None:
    for command in commands:
        parser = parsers.add_parser(command.name, help=command.help, description=command.help.capitalize() + ".")
        command.add_arguments(parser)
        add_output(parser)
        parser.set_defaults(run=command.run)


def _outcome(given: Sequence[str]) -> Outcome:
    try:
        args = build_parser().parse_args(given)
        with hearing_termination():
            outcome: Outcome = args.run(args)
        return outcome
    except (Exception, KeyboardInterrupt) as error:
        return failed(error, debug="--debug" in given)


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **kwargs)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"weightloom {version('weightloom')}")
        parser.exit()
