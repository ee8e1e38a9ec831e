"""Changes beside a layer's own parameters: W + scale * B @ A, arXiv 2106.09685, while W stays as it is.

A layer that is changed is of a class of its own, made from its former one: its parameters and their names stay what
they were. With every scale at zero it computes what the former one does and nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine.errors import PlanError
from weightloom.plugins.layers.experts import Experts
from weightloom.plugins.layers.gathered import times_chosen
from weightloom.plugins.layers.terms import Dial, Made, Term


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    """One adapter's change of one parameter, `scale * dial.scale * b @ a`.

    `a` is (rank, columns) and `b` (rows, rank), floats; of a stack both have its first dim before these.
    """

    a: mx.array
    b: mx.array
    scale: float
    dial: Dial

    @property
    def now(self) -> float:
        """What the product is multiplied by now."""
        return self.scale * self.dial.scale

    @property
    def acts(self) -> bool:
        """Whether it adds anything now."""
        return self.now != 0

    def times(self, x: mx.array, made: Made) -> mx.array:
        """Tokens (..., columns) -> what is added to the layer's (..., rows)."""
        return self.now * ((x @ self.a.T) @ self.b.T)

    def rows(self, tokens: mx.array, made: Made) -> mx.array:
        """Tokens (...) int -> what is added to the embeddings (..., columns)."""
        return self.now * (self.b[tokens] @ self.a)

    def times_chosen(self, x: mx.array, rows: mx.array, ordered: bool, made: Made) -> mx.array:
        """Tokens (M, 1, columns) and the matrix of a stack that each takes, (M,) -> what is added, (M, 1, rows)."""
        for factor in (self.a, self.b):
            x = times_chosen(x, factor, rows, ordered)
        return self.now * x


Terms = Mapping[str, tuple[Term, ...]]
"""The changes of a layer's parameters, by the parameter's name in the layer."""


class _Changed:
    """What a changed layer's class begins with."""

    _terms: Terms

    def _active(self, key: str) -> Iterable[Term]:
        return (term for term in self._terms.get(key, ()) if term.acts)


class _ChangedLinear(_Changed):
    def __call__(self, x: mx.array) -> mx.array:
        own = cast("Any", super())
        total, bias = own.__call__(x), cast("Any", self).get("bias")

        def plain(y: mx.array) -> mx.array:
            return y if bias is None else y - bias

        made = Made(plain(total), lambda other: plain(own.__call__(other)))
        return _sum(total, (term.times(x, made) for term in self._active("weight")))


class _ChangedEmbedding(_Changed):
    def __call__(self, x: mx.array) -> mx.array:
        own = cast("Any", super())
        made = Made(own.__call__(x), own.__call__)
        return _sum(made.result, (term.rows(x, made) for term in self._active("weight")))

    def as_linear(self, x: mx.array) -> mx.array:
        """Score tokens with the changed embeddings."""
        own = cast("Any", super())
        made = Made(own.as_linear(x), own.as_linear)
        return _sum(made.result, (term.times(x, made) for term in self._active("weight")))


class _ChangedExperts(_Changed):
    def times(self, name: str, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        """As of the layer it was, and what the changes of the stack `name` add."""
        own = cast("Any", super())
        made = Made(own.times(name, tokens, rows, ordered), lambda other: own.times(name, other, rows, ordered))
        return _sum(made.result, (term.times_chosen(tokens, rows, ordered, made) for term in self._active(name)))


_KINDS: Mapping[type, type] = {
    nn.Linear: _ChangedLinear,
    nn.QuantizedLinear: _ChangedLinear,
    nn.Embedding: _ChangedEmbedding,
    nn.QuantizedEmbedding: _ChangedEmbedding,
    Experts: _ChangedExperts,
}


def changeable(layer: nn.Module, key: str) -> bool:
    """Say whether a layer's parameter `key` can have changes beside it."""
    kind = next((kind for kind in _KINDS if isinstance(layer, kind)), None)
    return kind is not None and (key in layer if kind is Experts else key == "weight")


def change(layer: nn.Module, terms: Terms) -> None:
    """Put changes beside a layer's parameters; raises PlanError where it has no place for them."""
    for key in terms:
        if not changeable(layer, key):
            raise PlanError(
                f"{key} of {type(layer).__name__} cannot have factors beside it",
                expected="the weight of a linear layer or an embedding, or a stack of experts",
                tensor=key,
            )
    object.__setattr__(layer, "_terms", dict(terms))
    cast("Any", layer).__class__ = _changed(cast("Hashable", type(layer)))


@cache
def _changed(kind: Any) -> type:
    """Give the class of changed layers of a kind."""
    first = next(on for of, on in _KINDS.items() if issubclass(kind, of))
    return type(kind.__name__, (first, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _sum(made: mx.array, added: Iterable[mx.array]) -> mx.array:
    """Add to what a layer made, each in the wider dtype; what comes out has the layer's."""
    total = made
    for each in added:
        total = total + each
    return total.astype(made.dtype)
