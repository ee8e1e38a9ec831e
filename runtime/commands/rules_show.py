"""`weightloom rules show ID|FILE`: the rules of a model type, a class or a file, in the order in which they act."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome
from weightloom.runtime.terminal.text import plural

if TYPE_CHECKING:
    from weightloom.engine.mapping.rule import Rule
    from weightloom.runtime.choosing.choice import Choice


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("identifier", metavar="ID|FILE", help="a model type, a class name, or the path of a rule file")
    parser.add_argument("--layout", metavar="NAME", help="the layout (hf where there is one)")


def run(args: argparse.Namespace) -> Outcome:
    """List the rules."""
    from weightloom.runtime.inspecting.summary import choice_json, choice_lines

    choice = _of_file(args) if _is_file(args.identifier) else _known(args)
    rules = choice.rules()
    lines = [*choice_lines(choice), "", *(_line(number, rule) for number, rule in enumerate(rules, 1))]
    data = {
        "command": "rules show",
        "choice": choice_json(choice),
        "base_model_prefix": rules.base_model_prefix,
        "rules": [_json(rule) for rule in rules],
    }
    return Outcome(FINE, data, "\n".join(lines), plural(len(rules), "rule"))


def _is_file(text: str) -> bool:
    from weightloom.rules.loader import RULE_FILES

    return text.endswith(RULE_FILES) or Path(text).is_file()


def _of_file(args: argparse.Namespace) -> Choice:
    from weightloom.runtime.choosing.choice import Wish, choose

    return choose(None, Wish(rules=args.identifier, layout=args.layout), args.identifier)


def _known(args: argparse.Namespace) -> Choice:
    """Choose by a name; raises UsageError, with the nearest, for one that no rules are known by."""
    from weightloom.engine.errors import CheckpointError, UsageError
    from weightloom.runtime.choosing.choice import Wish, choose

    try:
        return choose(None, Wish(layout=args.layout, model_type=args.identifier), args.identifier)
    except CheckpointError as error:
        served = _served(args.identifier)
        if served is not None:
            raise UsageError(
                f"no rule file is for {args.identifier!r}, which a plugin serves",
                expected="a name that rule files are for",
                hint=f"the rules that the plugin has of its own: weightloom arch {served}",
            ) from error
        raise UsageError(
            f"no rules for {args.identifier!r}",
            expected=error.expected,
            hint="give one of these, or the path of a rule file (rules show FILE.yaml)",
        ) from error


def _served(identifier: str) -> str | None:
    """Give the model type that an installed plugin serves under a name; imports none."""
    from weightloom.plugins.discovery.manager import PluginManager

    return PluginManager().find(identifier)


def _line(number: int, rule: Rule) -> str:
    condition = f"  when {rule.when.text}" if rule.when else ""
    return f"{number:>3}. {rule.title()}{condition}" + (f"\n       {rule.why}" if rule.why else "")


def _json(rule: Rule) -> dict[str, Any]:
    return {
        "kind": rule.kind,
        "rule": rule.summary(),
        "scope": str(rule.scope) if rule.scope else None,
        "when": rule.when.text if rule.when else None,
        "why": rule.why or None,
        "fidelity": rule.fidelity,
        "file": rule.place.file if rule.place else None,
        "line": rule.place.line if rule.place else None,
    }


RULES_SHOW = Command("show", "list the rules of a model type, a class or a file, in order", add_arguments, run)
