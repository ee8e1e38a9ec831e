"""What adapters add beside a layer's own weight, as the layer sees it: terms, and the dial that they look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import mlx.core as mx


class Dial:
    """How much of one adapter acts, which all its terms share; they look when they are used."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What a layer's own weight made of the input, biases left out, and what it makes of other input instead."""

    result: mx.array
    of: Callable[[mx.array], mx.array]


class Term(Protocol):
    """One adapter's change of one weight (rows, columns), or of a stack of them."""

    @property
    def acts(self) -> bool:
        """Whether it adds anything now."""
        ...

    def times(self, x: mx.array, made: Made) -> mx.array:
        """Tokens (..., columns) -> what is added to the layer's (..., rows)."""
        ...

    def rows(self, tokens: mx.array, made: Made) -> mx.array:
        """Tokens (...) int -> what is added to the embeddings (..., columns)."""
        ...

    def times_chosen(self, x: mx.array, rows: mx.array, ordered: bool, made: Made) -> mx.array:
        """Tokens (M, 1, columns) and the matrix of a stack that each takes, (M,) -> what is added, (M, 1, rows)."""
        ...
