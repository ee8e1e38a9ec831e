"""Accompanying: scales and biases of packed rows go where the rows go, by a rule of their own where need be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weightloom.rules.proposing.proposal import ProposedRule

_WEIGHT = r"\.weight"
_PARTS = r"\.(scales|biases)"
# What is done to rows of a matrix, or to whole ones, is done to their scales alike.
_OF_ROWS = {"MergeModulelist", "Concatenate", "Chunk", "Split", "PermuteForRope"}


def accompanied(rules: Sequence[ProposedRule]) -> tuple[ProposedRule, ...]:
    """Give rules, and behind each that speaks of weights alone one for the scales and biases of packed ones."""
    return tuple(each for rule in rules for each in (rule, *_companion(rule)))


def _companion(rule: ProposedRule) -> Iterator[ProposedRule]:
    ((kind, item),) = rule.item.items()
    sources, ops = _texts(item["from"]), [name for op in item.get("ops", ()) for name in op]
    if all(text.endswith(_WEIGHT) for text in sources) and set(ops) <= _OF_ROWS:
        number = sources[0].count(r"(\d+)") + 1
        made = {
            **item,
            "from": _like(item["from"], [text.removesuffix(_WEIGHT) + _PARTS for text in sources]),
            "to": _like(item["to"], [_target(text, number) for text in _texts(item["to"])]),
        }
        yield ProposedRule({kind: made}, rule.links, ())


def _target(text: str, number: int) -> str:
    """Parts of a module stand beside its weight, those of a stack have its name in theirs."""
    return f"{text.removesuffix('weight')}\\{number}" if text.endswith(".weight") else f"{text}_\\{number}"


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _like(value: Any, texts: list[str]) -> str | list[str]:
    return texts[0] if isinstance(value, str) else texts
