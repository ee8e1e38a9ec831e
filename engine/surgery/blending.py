"""Interpolation between two tensors, in float32, rounded once.

lerp: (1 - t) a + t b.

slerp: with the tensors as vectors and w the angle between them, sin((1 - t) w) / sin(w) a + sin(t w) / sin(w) b
(K. Shoemake, Animating Rotation with Quaternion Curves, SIGGRAPH 1985, which states it for unit vectors; here the
angle is that of the directions, and the weights go on the vectors as they are, lengths included).
sin(w) goes to 0 where the vectors are parallel or opposite: where |cos(w)| > 1 - 1e-6, or one of them is zero, it is
lerp. For parallel ones that is slerp's limit; for opposite ones no arc is singled out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.surgery.steps import irreversible
from weightloom.engine.views.moves import Specs

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.surgery.donor import DonorTensor

NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class Lerped:
    """Between slot `at`, or the donor `first` in its place, and the donor `second`, of the same shape."""

    at: int
    first: DonorTensor | None
    second: DonorTensor
    ratio: float
    what: str
    arity: int = 1

    @property
    def beside_bytes(self) -> int:
        """Bytes of the donors' tensors while they are computed with."""
        return self.second.beside_bytes + (0 if self.first is None else self.first.beside_bytes)

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Interpolate."""
        import mlx.core as mx

        first = arrays[0] if self.first is None else self.first.read()
        made = self.between(first.astype(mx.float32), self.second.read().astype(mx.float32))
        return (made.astype(arrays[0].dtype),)

    def between(self, first: mx.array, second: mx.array) -> mx.array:
        """Give the point on the line."""
        return first * (1 - self.ratio) + second * self.ratio

    def inverse(self) -> Lerped:
        """Raise NotInvertible: what stood there is gone."""
        raise irreversible(self.what)


@dataclass(frozen=True, slots=True)
class Slerped(Lerped):
    """The same, along the arc."""

    def between(self, first: mx.array, second: mx.array) -> mx.array:
        """Give the point on the arc; on the line where there is none."""
        import mlx.core as mx

        one, other = mx.linalg.norm(first.reshape(-1)), mx.linalg.norm(second.reshape(-1))
        if not (one * other).item():
            return Lerped.between(self, first, second)
        cosine = ((first / one) * (second / other)).sum()
        if not (mx.abs(cosine) <= 1 - NEAR).item():
            return Lerped.between(self, first, second)
        angle = mx.arccos(cosine)
        weights = mx.sin(angle * (1 - self.ratio)), mx.sin(angle * self.ratio)
        return first * (weights[0] / mx.sin(angle)) + second * (weights[1] / mx.sin(angle))
