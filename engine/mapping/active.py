"""Which rules of a list act: those whose condition holds, with what they take from the config filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.rule import Rule


def active_rules(rules: Iterable[Rule], config: Mapping[str, Any], metadata: Mapping[str, str]) -> list[Rule]:
    """Give them in order; raises RuleError, with the rule and its place, where the config does not answer one."""
    found: list[Rule] = []
    for rule in rules:
        try:
            if rule.applies(config, metadata):
                found.append(rule.bound(config))
        except RuleError as error:
            raise rule.placed(error) from error
    return found
