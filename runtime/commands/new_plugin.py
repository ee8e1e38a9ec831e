"""`weightloom new-plugin NAME`: a package to start from, whose tests pass as it is written."""

from __future__ import annotations

import argparse
from pathlib import Path

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

KINDS = ("architecture", "rules", "op", "format")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="what it is for, such as my-arch")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0], help="what it brings (default: %(default)s)")
    parser.add_argument("--directory", metavar="DIR", help="where to write it (default: the distribution's name, here)")


def run(args: argparse.Namespace) -> Outcome:
    """Write the package; a directory with something in it is left alone."""
    from weightloom.runtime.scaffolding.names import Names
    from weightloom.runtime.scaffolding.writing import write_package

    names = Names(args.name)
    target = Path(args.directory or names.distribution)
    written = write_package(args.kind, names, target)
    data = {
        "command": "new-plugin",
        "kind": args.kind,
        "name": names.distribution,
        "directory": str(target),
        "files": [str(path) for path in written],
    }
    steps = f"next: cd {target} && pip install -e '.[test]' && pytest"
    return Outcome(FINE, data, "\n".join(map(str, written)), steps)


NEW_PLUGIN = Command("new-plugin", "write a package to start a plugin from", add_arguments, run)
