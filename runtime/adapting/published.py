"""An adapter of a model taken back to the names and shapes of a layout, by the inverse of the base's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weightloom.engine import Change, Plan, RuleSet, TensorSpec
from weightloom.engine.array_bytes import spec_and_bytes
from weightloom.engine.planning.fresh import save_plan
from weightloom.engine.planning.lifting import COLUMNS, ROWS, WHOLE, A, B, adapter_rules
from weightloom.engine.saving.given_back import given_back
from weightloom.runtime.adapting.adapter_plan import AdapterPlan

if TYPE_CHECKING:
    import mlx.core as mx

# Factors of embeddings, as both formats name them.
_EMBEDDING = re.compile(r"\.lora_embedding_[AB](?:\.|$)|embed_tokens\.lora_[ab]$")


@dataclass(frozen=True, eq=False)
class Factor:
    """A change `scale * b @ a` of the tensor `name` of a layout: `a` (..., rank, columns), `b` (..., rows, rank).

    `lengths` (..., rows), or with `by_columns` (..., columns), are those that the sum is brought to (DoRA).
    """

    name: str
    a: mx.array
    b: mx.array
    scale: float
    embedding: bool = False
    lengths: mx.array | None = None
    by_columns: bool = False

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
    lifted = adapter_rules(rules)
    back = save_plan(lifted, specs_of(arrays), config)
    by_part = dict(arrays)
    for change in found.changes:
        (_, part), *_ = back.by_target[change.b].taken
        by_part |= _part_by_part(change, arrays, part.shape[-2])
    back = save_plan(lifted, specs_of(by_part), config)
    made = given_back(back, by_part)
    whole = {name.removeprefix(f"{WHOLE}."): array for name, array in made.items() if name.startswith(f"{WHOLE}.")}
    return Published(tuple(_factors(found, back, made)), whole)


def specs_of(arrays: Mapping[str, mx.array]) -> dict[str, TensorSpec]:
    """Give the specs of arrays."""
    return {name: spec_and_bytes(name, array)[0] for name, array in arrays.items()}


def _part_by_part(change: Change, arrays: Mapping[str, mx.array], rows: int) -> dict[str, mx.array]:
    """Give the factors of what was changed as one where the layout has equal parts of so many rows, as blocks.

    The same change: each part has A, and its own rows of B.
    """
    import mlx.core as mx

    a, b = arrays[change.a], arrays[change.b]
    count, rest = divmod(b.shape[-2], rows)
    if count < 2 or rest or len(change.parts) > 1:
        return {}
    placed = [
        mx.concatenate([block if at == other else mx.zeros_like(block) for other in range(count)], axis=-1)
        for at, block in enumerate(mx.split(b, count, axis=-2))
    ]
    return {change.a: mx.concatenate([a] * count, axis=-2), change.b: mx.concatenate(placed, axis=-2)}


def _factors(found: AdapterPlan, back: Plan, made: Mapping[str, mx.array]) -> Iterator[Factor]:
    for change in found.changes:
        embedding = any(_EMBEDDING.search(name) for name, _ in found.plan.by_target[change.a].taken)
        for source in back.by_target[change.a].sources:
            name = source.removeprefix(f"{A}.")
            b, scale = made[f"{B}.{name}"], found.scales[change.parameter]
            lengths = made.get(f"{COLUMNS if change.by_columns else ROWS}.{name}")
            yield Factor(name, made[source], b, scale, embedding, lengths, change.by_columns)
