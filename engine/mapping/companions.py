"""Rules for what goes with a weight: its scales and biases take the way of the rows that they belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet

_WEIGHT = "weight"
_DOTTED = r"\.weight"


def with_companions(rules: RuleSet, names: Collection[str]) -> RuleSet:
    """Give the rules and, behind each that is about weights, one like it for each companion of these names.

    `X.weight` has `X.scales` beside it, and a stack X, whose name does not end in `weight`, has `X_scales`. A pattern
    that ends before `.weight` leads companions the right way by itself.
    """
    return RuleSet(_with_each(rules, sorted(names)), rules.base_model_prefix)


def _with_each(rules: RuleSet, names: Collection[str]) -> Iterator[Rule]:
    for rule in rules:
        yield rule
        if isinstance(rule, Renaming) and all(text.endswith(_WEIGHT) for text in rule.source_patterns):
            yield from (_companion(rule, name) for name in names)


def _companion(rule: Renaming, name: str) -> Rule:
    sources = tuple(_beside(text, name) for text in rule.source_patterns)
    targets = tuple(_beside(text, name) for text in rule.target_patterns)
    optional = rule.optional if isinstance(rule.optional, bool) else tuple(_beside(t, name) for t in rule.optional)
    return rule.replace(source_patterns=sources, target_patterns=targets, optional=optional, origin=None)


def _beside(text: str, name: str) -> str:
    """Put a companion's name in the place of the weight's, in a pattern or a template."""
    if text.endswith((_DOTTED, f".{_WEIGHT}")):
        return text[: -len(_WEIGHT)] + name
    return f"{text}_{name}"
