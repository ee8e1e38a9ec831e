"""An adapter of a model taken back to the names and shapes of a layout, by the inverse of the base's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weightloom.engine import Plan, RuleSet
from weightloom.engine.array_bytes import spec_and_bytes
from weightloom.engine.planning.fresh import save_plan
from weightloom.engine.planning.lifting import WHOLE, A, B, adapter_rules
from weightloom.engine.saving.given_back import given_back
from weightloom.runtime.adapting.adapter_plan import AdapterPlan

if TYPE_CHECKING:
    import mlx.core as mx

# Factors of embeddings, as both formats name them.
_EMBEDDING = re.compile(r"\.lora_embedding_[AB](?:\.|$)|embed_tokens\.lora_[ab]$")


@dataclass(frozen=True, eq=False)
class Factor:
    """A change `scale * b @ a` of the tensor `name` of a layout: `a` (..., rank, columns), `b` (..., rows, rank)."""

    name: str
    a: mx.array
    b: mx.array
    scale: float
    embedding: bool = False

    @property
    def rank(self) -> int:
        """The rank."""
        return int(self.a.shape[-2])

    @property
    def module(self) -> str:
        """The module whose weight it is."""
        return self.name.removesuffix(".weight")


@dataclass(frozen=True, eq=False)
class Published:
    """An adapter in a layout of its base: factors by the tensor's name, and whole tensors."""

    factors: tuple[Factor, ...]
    whole: Mapping[str, mx.array] = field(default_factory=dict)


def published(
    found: AdapterPlan, arrays: Mapping[str, mx.array], rules: RuleSet, config: Mapping[str, Any]
) -> Published:
    """Take an adapter back to the layout that rules are of; `arrays` are by the names of its plan.

    Stacks are taken apart, and joined tensors cut, where the layout has them so. Raises NotInvertible, naming the rule,
    where a factor has values that the layout has no place for.
    """
    specs = {name: spec_and_bytes(name, array)[0] for name, array in arrays.items()}
    back = save_plan(adapter_rules(rules), {name: spec.logical() for name, spec in specs.items()}, config)
    made = given_back(back, dict(arrays))
    whole = {name.removeprefix(f"{WHOLE}."): array for name, array in made.items() if name.startswith(f"{WHOLE}.")}
    return Published(tuple(_factors(found, back, made)), whole)


def _factors(found: AdapterPlan, back: Plan, made: Mapping[str, mx.array]) -> Iterator[Factor]:
    for change in found.changes:
        embedding = any(_EMBEDDING.search(name) for name, _ in found.plan.by_target[change.a].taken)
        for source in back.by_target[change.a].sources:
            name = source.removeprefix(f"{A}.")
            b = made[f"{B}.{name}"]
            yield Factor(name, made[source], b, found.scales[change.parameter], embedding)
