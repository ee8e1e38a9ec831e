"""Cases of ops: ops with the tensors that they start from, and what NumPy makes of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.moves import elements_of
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.ops import (
    ConversionOp,
)
from weightloom.engine.ops.chain import Chain, OpContext, Part, Target
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program

Array = np.ndarray[Any, Any]
Parts = list[list[Array]]
Shape = tuple[int, ...]

WHOLE_BYTE_DTYPES = tuple(name for name, dtype in DTYPES.items() if dtype.bits >= 8)
OP_CONFIG: Mapping[str, Any] = {f"n{n}": n for n in range(257)} | {"num_attention_heads": 4, "head_dim": 4}


@dataclass(frozen=True)
class Applied:
    """An op, and the function that NumPy has for it. `spreads`: each result is a target of its own.

    `leaves` gives what is no parameter.
    """

    op: ConversionOp
    run: Callable[[Parts], Parts]
    spreads: bool = False
    leaves: Callable[[Parts], list[Array]] = lambda parts: []


@dataclass(frozen=True)
class OpCase:
    """Ops with the tensors that they start from: for each source pattern one, or a list of them."""

    dtype: str
    shapes: tuple[tuple[Shape, ...], ...]
    steps: tuple[Applied, ...]

    @property
    def listed(self) -> tuple[bool, ...]:
        """Which sources are lists."""
        return tuple(len(part) > 1 for part in self.shapes)

    @property
    def ops(self) -> tuple[ConversionOp, ...]:
        return tuple(step.op for step in self.steps)

    def arrays(self, seed: int = 0) -> Parts:
        """The elements to start from, as unsigned integers: NaNs are among their bit patterns."""
        numbers = iter(range(seed, seed + 10_000))
        return [
            [elements_of(TensorSpec(self.dtype, shape), next(numbers)) for shape in shapes] for shapes in self.shapes
        ]

    def expected(self, parts: Parts) -> Parts:
        """What NumPy makes of them."""
        for step in self.steps:
            parts = step.run(parts)
        return parts

    def left(self, parts: Parts) -> list[Array]:
        """What NumPy leaves over, in the order of the ops."""
        found: list[Array] = []
        for step in self.steps:
            found += step.leaves(parts)
            parts = step.run(parts)
        return found

    def slots(self, seed: int = 0) -> tuple[Array, ...]:
        """What the program takes: the arrays, and zeros where it fills up."""
        arrays = flat(self.arrays(seed))
        fillers = self.program().in_specs[len(arrays) :]
        return (*arrays, *(np.zeros(spec.shape, arrays[0].dtype) for spec in fillers))

    @property
    def made(self) -> tuple[tuple[TensorSpec, ...], ...]:
        """The specs of the results."""
        return tuple(
            tuple(TensorSpec(self.dtype, array.shape) for array in part) for part in self.expected(self.arrays())
        )

    @property
    def numbered(self) -> tuple[bool, ...]:
        """Which results are lists, numbered by the target's star."""
        return tuple(len(specs) != 1 for specs in self.made)

    def context(self) -> OpContext:
        """The targets, their shapes where they are not lists, and the config."""
        targets = tuple(
            Target(f"target{n}", None if many else specs[0])
            for n, (specs, many) in enumerate(zip(self.made, self.numbered, strict=True))
        )
        return OpContext(targets, OP_CONFIG)

    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(f"source{n}", tuple(TensorSpec(self.dtype, shape) for shape in shapes))
            for n, shapes in enumerate(self.shapes)
        )

    def program(self) -> Program:
        """The ops, bound."""
        chain = Chain(self.parts(), self.context())
        for op in self.ops:
            op.lower(chain)
        return chain.program()


Stage = tuple[tuple[Shape, ...], ...]
Drawn = st.SearchStrategy[Applied] | None


def flat(parts: Parts) -> list[Array]:
    return [array for part in parts for array in part]


def each(run: Callable[[Array], Array]) -> Callable[[Parts], Parts]:
    return lambda parts: [[run(array) for array in part] for part in parts]


def either_sign(dim: int, ndim: int) -> st.SearchStrategy[int]:
    return st.sampled_from((dim, dim - ndim))
