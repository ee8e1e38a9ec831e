"""How far numbers are from those that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Loss:
    """Sums of squares of the differences and of the numbers themselves, and the largest difference."""

    difference: float = 0.0
    whole: float = 0.0
    largest: float = 0.0

    @classmethod
    def between(cls, old: mx.array, new: mx.array) -> Loss:
        """Compare two F32 arrays of one shape."""
        import mlx.core as mx

        apart = mx.abs(new - old)
        found = mx.stack([mx.sum(apart * apart), mx.sum(old * old), mx.max(apart)])
        return cls(*cast("list[float]", found.tolist()))

    @property
    def relative(self) -> float:
        """The root of the first by the root of the second; 0 where nothing differs."""
        return sqrt(self.difference / self.whole) if self.difference else 0.0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.difference + other.difference, self.whole + other.whole, max(self.largest, other.largest))


@runtime_checkable
class Losing(Protocol):
    """A value step that changes numbers, and can say by how much."""

    def loss(self, taken: tuple[mx.array, ...], made: tuple[mx.array, ...]) -> Loss:
        """Compare what it took with what it made."""
        ...
