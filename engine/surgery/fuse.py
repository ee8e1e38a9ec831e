"""The operation that puts adapters into the tensors that they change: low rank added, whole tensors taken."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from weightloom.engine.surgery.glob import Glob
from weightloom.engine.surgery.lengths import Lengths
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Edit, Operation
from weightloom.engine.surgery.steps import irreversible
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import ValueStep
from weightloom.engine.views.row_blocks import RowBlock

if TYPE_CHECKING:
    import mlx.core as mx

_TITLE = "fuse adapters"
EVERYTHING = Glob("**")


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """A change `scale * b @ a`: `a` (..., rank, columns), `b` (..., rows, rank), floats of any dtype.

    With `lengths` the sum of weight and product is brought to these. `share` is how much of the change is made.
    """

    a: mx.array
    b: mx.array
    scale: float
    lengths: Lengths | None = None
    share: float = 1.0

    def of_rows(self, block: RowBlock) -> Factors | None:
        """Give the change of some rows of a matrix, (rows, columns); None where it needs the others too."""
        lengths = None if self.lengths is None else self.lengths.of_rows(block)
        if lengths is None and self.lengths is not None:
            return None
        return replace(self, a=block.matrix(self.a), b=block.of(self.b), lengths=lengths)

    def added_to(self, weight: mx.array) -> mx.array:
        """Give what it adds to a weight (..., rows, columns), float32."""
        import mlx.core as mx

        product = self.scale * (self.b.astype(mx.float32) @ self.a.astype(mx.float32))
        if self.lengths is None:
            return self.share * product
        changed = weight + product
        return self.share * (self.lengths.gain(changed) * changed - weight)


@dataclass(frozen=True, slots=True)
class LowRankAdded:
    """Slot `at` plus changes, each of the slot as it is: summed in float32 and rounded once to the slot's dtype."""

    at: int
    factors: tuple[Factors, ...]
    what: str = _TITLE
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Multiply the factors, and add."""
        import mlx.core as mx

        weight = arrays[0].astype(mx.float32)
        total = sum((each.added_to(weight) for each in self.factors), weight)
        return (total.astype(arrays[0].dtype),)

    def of_rows(self, block: RowBlock) -> LowRankAdded | None:
        """Add to some rows alone."""
        found = [each.of_rows(block) for each in self.factors]
        known = tuple(each for each in found if each is not None)
        return replace(self, factors=known) if len(known) == len(found) else None

    def inverse(self) -> LowRankAdded:
        """Raise NotInvertible: the sum is rounded."""
        raise irreversible(self.what)


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """An array of the same shape in the place of slot `at`, rounded to its dtype."""

    at: int
    array: mx.array
    what: str = _TITLE
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Give the array."""
        return (self.array.astype(arrays[0].dtype),)

    def of_rows(self, block: RowBlock) -> Taken:
        """Give some rows alone."""
        return replace(self, array=block.of(self.array))

    def inverse(self) -> Taken:
        """Raise NotInvertible: what stood there is gone."""
        raise irreversible(self.what)


@dataclass(frozen=True)
class Fuse(Operation):
    """Add `factors` to parameters, and put `whole` arrays in the place of others; both by parameter."""

    op: ClassVar[str] = _TITLE

    factors: Mapping[str, Sequence[Factors]]
    whole: Mapping[str, mx.array]
    pattern: Glob = field(default=EVERYTHING, kw_only=True)

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step a tensor; raises PlanError, naming all, for codes, integers and names that share a tensor."""
        every = sorted({*self.factors, *self.whole})
        shared = [name for name in every if name in names.shared]
        if shared:
            raise self.refusal(shared, f"share the tensor of {names.shared[shared[0]]!r}", "an adapter of that one")
        self.need_floats(names, every)
        return tuple(Edit(name, step) for name in every for step in self.steps(name))

    def without(self, names: Container[str]) -> Fuse:
        """Give the same without these parameters."""
        factors = {name: found for name, found in self.factors.items() if name not in names}
        return replace(self, factors=factors, whole={n: array for n, array in self.whole.items() if n not in names})

    def steps(self, name: str) -> Iterator[ValueStep]:
        """Give what is done to a parameter, each to what the one before it gives."""
        if name in self.whole:
            yield Taken(0, self.whole[name])
        if name in self.factors:
            yield LowRankAdded(0, tuple(self.factors[name]))
