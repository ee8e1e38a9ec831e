"""Value steps on MLX arrays: what follows the gather in a program that changes values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weightloom.engine.views.program import Program, ValueStep

if TYPE_CHECKING:
    import mlx.core as mx


class MlxAlgebra:
    """Moves MLX arrays."""

    def reshape(self, x: mx.array, shape: tuple[int, ...]) -> mx.array:
        """Reshape an array."""
        return x.reshape(shape)

    def permute(self, x: mx.array, axes: tuple[int, ...]) -> mx.array:
        """Permute an array."""
        return x.transpose(axes)

    def cut(self, x: mx.array, dim: int, start: int, stop: int) -> mx.array:
        """Cut an array."""
        return x[(slice(None),) * dim + (slice(start, stop),)]

    def join(self, xs: Sequence[mx.array], dim: int) -> mx.array:
        """Join arrays."""
        import mlx.core as mx

        return mx.concatenate(list(xs), axis=dim)


def run_steps(steps: Sequence[ValueStep], arrays: tuple[mx.array, ...]) -> mx.array:
    """Run steps of which the first takes all arrays, each gives one, and each later one takes that."""
    import mlx.core as mx

    for step in steps:
        arrays = step.apply(arrays)
    array = mx.contiguous(arrays[0])
    mx.eval(array)
    return array


def finish(program: Program, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
    """Run a program from its first value step on; `arrays` are what the moves before it give."""
    import mlx.core as mx

    steps = program.segments()
    for step in steps[1:] if isinstance(steps[0], Program) else steps:
        if isinstance(step, Program):
            arrays = step.apply(arrays, MlxAlgebra())
        else:
            stop = step.at + step.arity
            arrays = (*arrays[: step.at], *step.apply(arrays[step.at : stop]), *arrays[stop:])
            mx.eval(*arrays)
    arrays = tuple(mx.contiguous(array) for array in arrays)
    mx.eval(*arrays)
    return arrays
