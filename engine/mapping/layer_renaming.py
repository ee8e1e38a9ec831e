"""LayerRenaming: a rename in some layers alone, told by their numbers, which the config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.expressions import Expression
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Patterns, Rule
from weightloom.engine.ops.base import amount, with_text_config

_NUMBER = r"(\d+)"
# A config is others' data: it must not make a pattern without end.
_MOST_LAYERS = 1000


@dataclass(frozen=True, init=False)
class LayerRenaming(WeightRenaming):
    r"""A rename in the layers that `layers` holds for: an expression over the config and `layer`, a layer's number.

    The number is the first `(\d+)` of each source pattern. Raises RuleError for a pattern without one, and, when it
    is bound, for a config that does not say how many layers there are.
    """

    kind: ClassVar[str] = "rename"

    layers: Expression

    def __init__(
        self, source_patterns: Patterns, target_patterns: Patterns, layers: Expression | str, **common: Any
    ) -> None:
        self._set(layers=Expression(layers) if isinstance(layers, str) else layers)
        super().__init__(source_patterns, target_patterns, **common)

    def _check(self) -> None:
        super()._check()
        for text in self.source_patterns if self.origin is None else ():
            if _NUMBER not in text:
                raise RuleError(
                    f"{text} has no {_NUMBER} for the number of a layer", expected="one in each source", field="from"
                )

    def bound(self, config: Mapping[str, Any]) -> WeightRenaming:
        """Give the rename of the layers that the config says; of none, it matches nothing."""
        known = with_text_config(config)
        numbers = [str(n) for n in range(self._count(known)) if self.layers.value({**known, "layer": n})]
        group = f"({'|'.join(numbers)})" if numbers else "((?!))"
        sources = [text.replace(_NUMBER, group, 1) for text in self.source_patterns]
        common = {field.name: getattr(self, field.name) for field in fields(Rule)}
        return WeightRenaming(sources, self.target_patterns, **common)

    def _count(self, config: Mapping[str, Any]) -> int:
        try:
            count = amount(self.kind, "num_hidden_layers", config)
        except PlanError as error:
            raise RuleError(
                error.seen, expected=error.expected, hint=error.hint, rule=self.title(), field=error.field
            ) from error
        if count > _MOST_LAYERS:
            raise RuleError(f"{count} layers", expected=f"{_MOST_LAYERS} at most", rule=self.title())
        return count

    def summary(self) -> str:
        """Show sources, targets and the layers."""
        return f"{super().summary()} in layers with {self.layers.text}"
