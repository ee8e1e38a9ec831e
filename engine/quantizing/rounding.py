"""What quantizing takes of each matrix, measured: packed, unpacked, and compared with what it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, cast

from weightloom.engine.plan import Plan
from weightloom.engine.planning.composing.part import part_of
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.steps import Pack, Unpack
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Rounding:
    """A matrix by its parameter's name, how it is packed, and the error: the difference's norm by that of the whole."""

    matrix: str
    how: Quantization
    error: float

    def __str__(self) -> str:
        return f"{self.matrix}: {self.how}: {self.error:.2%} lost"


def roundings(plan: Plan, wanted: Mapping[str, Quantization]) -> Iterator[Rounding]:
    """Measure float parameters of a plan, one at a time; raises as reading does."""
    for name, how in sorted(wanted.items()):
        yield Rounding(name, how, _error(part_of(plan, (name,)).load(threads=1)[name], plan.params[name], how))


def _error(matrix: mx.array, spec: TensorSpec, how: Quantization) -> float:
    """Give the root of the sum of squares of the differences by that of the matrix, one of a stack at a time."""
    differences = whole = 0.0
    for each in matrix.reshape(-1, *matrix.shape[-2:]):
        own = TensorSpec(spec.dtype, tuple(each.shape))
        parts = Pack(0, how, (own,)).apply((each,))
        (back,) = Unpack(0, how, how.packed(own)).apply(parts)
        difference, size = _squares(each, back)
        differences, whole = differences + difference, whole + size
    return sqrt(differences / whole) if whole else 0.0


def _squares(old: mx.array, new: mx.array) -> tuple[float, float]:
    import mlx.core as mx

    wide = old.astype(mx.float32)
    apart = wide - new.astype(mx.float32)
    sums = mx.stack([mx.sum(apart * apart), mx.sum(wide * wide)])
    return cast("tuple[float, float]", tuple(cast("list[float]", sums.tolist())))
