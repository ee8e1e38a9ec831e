"""`weightloom rules lint FILE...`: what can be found wrong in rule files from the files alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome
from weightloom.runtime.terminal.text import plural


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a rule file")


def run(args: argparse.Namespace) -> Outcome:
    """Lint the files; exit code 1 when anything is found."""
    from weightloom.rules import lint_rules

    findings = [finding for file in args.files for finding in lint_rules(file)]
    lines = map(str, findings)
    data = {"command": "rules lint", "files": args.files, "findings": [asdict(each) for each in findings]}
    remarks = f"{plural(len(findings), 'finding')} in {plural(len(args.files), 'file')}"
    return Outcome(AT_FAULT if findings else FINE, data, "\n".join(lines), remarks)


RULES_LINT = Command("lint", "look for mistakes in rule files", add_arguments, run)
