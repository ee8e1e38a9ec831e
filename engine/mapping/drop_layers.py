"""DropLayers: layers beyond those that the model has, told by their numbers, which the config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.mapping.claims import Drop
from weightloom.engine.mapping.patterns import compile_source
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.ops.base import Amount, amount, frozen_sizes

# A config is others' data: it must not make a pattern without end.
_MOST_LAYERS = 1000


@dataclass(frozen=True, init=False)
class DropLayers(Rule):
    """Layers that the model may not use: `DropLayers('^model\\.layers', 'num_hidden_layers', 1)`.

    `layers` is a pattern of the list's name, `first` the number of the first such layer, `count` how many there are:
    numbers, or expressions over the config. Each is dropped as by `Drop`, or of each what `parts`, a pattern of what
    follows the number, matches; anything else without a place stays an error.
    """

    kind: ClassVar[str] = "drop_layers"

    layers: str
    first: Amount
    count: Amount
    parts: str

    def __init__(self, layers: str, first: Amount, count: Amount = 1, parts: str = "", **common: Any) -> None:
        for field, text in (("layers", layers), ("parts", parts)):
            if not isinstance(text, str):
                raise RuleError(f"{field} is {text!r}", expected="a pattern", field=field)
            compile_source(text, {}, anchored=False)
        frozen_sizes((first, count))
        self._set(layers=layers, first=first, count=count, parts=parts)
        self._set_common(common)

    def bound(self, config: Mapping[str, Any]) -> Rule:
        """Give the drop of the numbers that the config says; raises RuleError where it does not say."""
        first, count = self._number("first", config), self._number("count", config)
        if count == 0:
            return self
        if count > _MOST_LAYERS:
            raise RuleError(f"{count} layers to drop", expected=f"{_MOST_LAYERS} at most", rule=self.title())
        numbers = "|".join(map(str, range(first, first + count)))
        common = {field.name: getattr(self, field.name) for field in fields(Rule)}
        return Drop(rf"{self.layers}\.(?:{numbers})\.{self.parts}", **common)

    def inverse(self) -> DropLayers:
        """Give the rule itself: it changes nothing."""
        return self

    def summary(self) -> str:
        """Show the list and the numbers."""
        parts = f"{self.parts} of " if self.parts else ""
        return f"drop {parts}{self.layers} from {self.first} on, {self.count} in all"

    def _number(self, field: str, config: Mapping[str, Any]) -> int:
        try:
            return amount(self.kind, getattr(self, field), config)
        except PlanError as error:
            raise RuleError(
                error.seen, expected=error.expected, hint=error.hint, rule=self.title(), field=field
            ) from error
