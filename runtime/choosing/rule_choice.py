"""The rules that a model is loaded by: the caller's, then what the walk through its tree finds, then the plugin's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from weightloom.engine import Rule, RuleSet, scoped_rules
from weightloom.engine.errors import PluginError, UsageError
from weightloom.engine.show import shown
from weightloom.plugins.architecture import Architecture
from weightloom.runtime.choosing.resolution import OUTERMOST, LayoutLookup, user_rules

# A RuleSet is a sequence of rules too.
CallerRules: TypeAlias = "Sequence[Rule] | str | Path"


def caller_rules(rules: CallerRules | None, layout: str) -> RuleSet:
    """Give the caller's rules; from a file, in this layout if the file has it, else in its usual one.

    Raises UsageError for what is neither rules nor a file's path, and as `user_rules` does.
    """
    if rules is None:
        return RuleSet()
    if isinstance(rules, str | Path):
        found = user_rules(str(rules), layout, or_usual=True)
    elif isinstance(rules, Iterable):
        found = rules if isinstance(rules, RuleSet) else RuleSet(rules)
    else:
        raise UsageError(f"rules is {shown(rules)}", expected="rules, or the path of a rule file", field="rules")
    return found.replace_all(scope=OUTERMOST)


def model_rules(
    architecture: Architecture, config: Mapping[str, Any], layout: str, first: RuleSet | None = None
) -> RuleSet:
    """Give the rules of an architecture for a layout, each with its scope, its own from there to its module last.

    `first` are the caller's, which act before them all.
    """
    found = shipped_rules(architecture, config, layout)
    return led_on(architecture, found if first is None else first + found, config)


def shipped_rules(architecture: Architecture, config: Mapping[str, Any], layout: str) -> RuleSet:
    """Give the rules that lead to canonical names alone, each with its scope."""
    return scoped_rules(architecture.nodes(config), LayoutLookup(layout), architecture.base_model_prefix)


def led_on(architecture: Architecture, rules: RuleSet, config: Mapping[str, Any]) -> RuleSet:
    """Give rules that lead to canonical names, and behind them those from there to the architecture's module."""
    return rewritten(architecture, rules + architecture.rules, config)


def rewritten(architecture: Architecture, rules: RuleSet, config: Mapping[str, Any]) -> RuleSet:
    """Give the rules as the architecture rewrites them, if it does; raises PluginError where it gives no rules."""
    if architecture.rewrite_rules is None:
        return rules
    found = architecture.rewrite_rules(rules, config)
    if isinstance(found, RuleSet):
        return found
    raise PluginError(
        f"rewrite_rules of {architecture.source or 'a plugin'}:{architecture.name} gives {type(found).__name__}",
        expected="a RuleSet",
        field="rewrite_rules",
    )
