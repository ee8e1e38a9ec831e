"""Which captures a target asks for that no source gives: why a rule was refused, in the linter's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.syntax import tokens

_SIDES = (("from", "to"), ("parameter", "source"))


def uncaptured(rule: object) -> tuple[int, ...]:
    """Give the captures that a rule's targets use and its sources lack; `rule` is the value under its keyword."""
    return tuple(sorted({number for pair in _pairs(rule) for number in _lacking(*pair)}))


def _pairs(rule: object) -> Iterator[tuple[list[str], list[str]]]:
    for item in rule if isinstance(rule, tuple) else (rule,):
        if isinstance(item, Mapping):
            for source, target in _SIDES:
                if source in item and target in item:
                    yield _texts(item[source]), _texts(item[target])


def _texts(value: Any) -> list[str]:
    found = value if isinstance(value, tuple) else (value,)
    return [each for each in found if isinstance(each, str)]


def _lacking(sources: list[str], targets: list[str]) -> set[int]:
    try:
        given = min((sum(part.kind == "group" for part in tokens(text)) for text in sources), default=0)
        wanted = {int(part.text[1]) for text in targets for part in tokens(text) if part.kind == "ref"}
    except RuleError:
        return set()
    return {number for number in wanted if number > given}
