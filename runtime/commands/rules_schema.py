"""`weightloom rules schema`: the JSON Schema of rule files, or of recipes, for editors."""

from __future__ import annotations

import argparse

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

_FILES = {"rules": "schema.json", "recipes": "recipe_schema.json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("kind", nargs="?", choices=tuple(_FILES), default="rules", help="of which files (rules)")


def run(args: argparse.Namespace) -> Outcome:
    """Print the schema."""
    import json
    from importlib.resources import files

    text = files("weightloom.rules").joinpath(_FILES[args.kind]).read_text(encoding="utf-8")
    return Outcome(FINE, {"command": "rules schema", "json_schema": json.loads(text)}, text.rstrip("\n"))


RULES_SCHEMA = Command("schema", "print the JSON Schema of rule files, or of recipes", add_arguments, run)
