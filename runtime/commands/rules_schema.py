"""`weightloom rules schema`: the JSON Schema of rule files, for editors."""

from __future__ import annotations

import argparse

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: none."""


def run(args: argparse.Namespace) -> Outcome:
    """Print the schema."""
    import json
    from importlib.resources import files

    text = files("weightloom.rules").joinpath("schema.json").read_text(encoding="utf-8")
    return Outcome(FINE, {"command": "rules schema", "json_schema": json.loads(text)}, text.rstrip("\n"))


RULES_SCHEMA = Command("schema", "print the JSON Schema of rule files", add_arguments, run)
