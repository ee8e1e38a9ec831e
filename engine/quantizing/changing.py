"""Value steps on packed matrices whose values change: unpacked, changed as float32, and packed again or left so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import NotInvertible
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.refitting import floats_of, packed, refitted
from weightloom.engine.quantizing.steps import Unpack
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import ValueStep
from weightloom.engine.views.row_blocks import AT_ONCE, of_rows, row_blocks

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.quantizing.refitting import Parts

# What is held of some rows while they are packed: MLX takes up to 20 numbers for each while it looks for codes.
_SCRATCH = 100 * AT_ONCE


@dataclass(frozen=True, slots=True)
class Repacked:
    """Slots `at` on, the parts of a matrix packed as `how`: changed by steps of one slot, and packed as they were."""

    beside_bytes: ClassVar[int] = _SCRATCH

    at: int
    how: Quantization
    changes: tuple[ValueStep, ...]

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.how.parts)

    def infer(self, specs: Specs) -> Specs:
        """Give the same specs; PlanError for what is not packed like this."""
        as_floats(self.how, specs)
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, pack."""
        return made(arrays, self.how, self.changes, lambda parts, wanted: refitted(parts, wanted, self.how))

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: what is packed is rounded."""
        raise rounded()


@dataclass(frozen=True, slots=True)
class PackedWider:
    """Slots `at` on, the parts of a matrix packed as `how`: changed by steps of one slot, and packed as `wider`."""

    beside_bytes: ClassVar[int] = _SCRATCH

    at: int
    how: Quantization
    changes: tuple[ValueStep, ...]
    wider: Quantization

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.how.parts)

    def infer(self, specs: Specs) -> Specs:
        """Give the specs of the wider form; PlanError for what is not packed like this."""
        return self.wider.packed(as_floats(self.how, specs)[0])

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, pack."""
        dtype = arrays[1].dtype
        return made(arrays, self.how, self.changes, lambda parts, wanted: packed(wanted, self.wider, dtype))

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: what is packed is rounded."""
        raise rounded()


@dataclass(frozen=True, slots=True)
class LeftAsFloats:
    """Slots `at` on, the parts of a matrix packed as `how`: changed by steps of one slot, and rounded to a dtype.

    It is the one that unpacking gives: that of the scales in affine mode, else BF16.
    """

    beside_bytes: ClassVar[int] = _SCRATCH

    at: int
    how: Quantization
    changes: tuple[ValueStep, ...]
    dtype: str

    @property
    def arity(self) -> int:
        """Three, or two without biases."""
        return len(self.how.parts)

    def infer(self, specs: Specs) -> Specs:
        """Give one spec of floats; PlanError for what is not packed like this."""
        return as_floats(self.how, specs)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Unpack, change, round."""
        return made(arrays, self.how, self.changes, lambda parts, wanted: (rounded_to(wanted, self.dtype),))

    def inverse(self) -> ValueStep:
        """Raise NotInvertible: the sum is rounded."""
        raise rounded()


Changing = Repacked | PackedWider | LeftAsFloats


def as_floats(how: Quantization, specs: Specs) -> Specs:
    """Give the spec of what parts stand for; PlanError for parts that are not packed like this."""
    return Unpack(0, how, specs).infer(specs)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some rows, or all: their packed parts, their values, and what these are to be, float32."""

    parts: Parts
    before: mx.array
    wanted: mx.array


def in_blocks(parts: Parts, how: Quantization, steps: tuple[ValueStep, ...]) -> Iterator[Block]:
    """Change some rows after the other by steps of one slot; all at once where a step needs them."""
    import mlx.core as mx

    shape = (*parts[1].shape[:-1], parts[1].shape[-1] * how.group_size)
    for rows in row_blocks(shape):
        own = of_rows(steps, rows)
        if own is None:
            before = floats_of(parts, how)
            yield Block(parts, before, changed(before, steps))
            return
        some = tuple(rows.of(part) for part in parts)
        before = floats_of(some, how)
        wanted = changed(before, own)
        # Else MLX would hold what it computes with for all rows at once.
        mx.eval(before, wanted, *some)
        yield Block(some, before, wanted)


def made(
    parts: Parts, how: Quantization, steps: tuple[ValueStep, ...], make: Callable[[Parts, mx.array], Parts]
) -> Parts:
    """Make something of the parts of each block and of what its values are to be, and join it."""
    import mlx.core as mx

    pieces: list[Parts] = []
    for block in in_blocks(parts, how, steps):
        pieces.append(make(block.parts, block.wanted))
        mx.eval(*pieces[-1])
    rows = parts[1].shape[:-1]
    return tuple(mx.concatenate(list(each)).reshape(*rows, each[0].shape[-1]) for each in zip(*pieces, strict=True))


def changed(values: mx.array, steps: Sequence[ValueStep]) -> mx.array:
    """Values of any shape, float32 -> what steps of one slot make of them, one after another."""
    for step in steps:
        (values,) = step.apply((values,))
    return values


def rounded_to(values: mx.array, dtype: str) -> mx.array:
    """Round to a float dtype, as safetensors spells it."""
    import mlx.core as mx

    return values.astype(getattr(mx, DTYPES[dtype].mlx or ""))


def rounded() -> NotInvertible:
    """Give the error of a step whose result is rounded."""
    return NotInvertible(
        "packed tensors were changed, and are rounded",
        expected="a plan without adapters, which has a way back",
        hint="keep the source files",
    )
