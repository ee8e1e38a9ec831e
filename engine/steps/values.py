"""Value steps on MLX arrays: what follows the gather in a program that changes values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.engine.views.program import Program, ValueStep
from weightloom.engine.views.whole_slots import whole_slots

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


def run_steps(steps: Sequence[ValueStep], arrays: tuple[mx.array, ...], name: str) -> mx.array:
    """Run steps of which the first takes all arrays, each gives one, and each later one takes that.

    Raises PlanError, with the name of what is made, for values that a step refuses.
    """
    import mlx.core as mx

    for step in steps:
        arrays = _applied(step, arrays, name)
    array = mx.contiguous(arrays[0])
    mx.eval(array)
    return array


def finish(program: Program, arrays: list[mx.array], sources: Sequence[str]) -> tuple[mx.array, ...]:
    """Run a program from its first value step on; `arrays` are what the moves before it give, and are used up.

    `sources` are the names of what the program takes. Raises PlanError, naming the first of a step, for values that it
    refuses.
    """
    import mlx.core as mx

    first, *later = program.segments()
    names = tuple(sources) + ("",) * (len(program.in_specs) - len(sources))
    for step in (first, *later):
        if isinstance(step, Program):
            names = tuple(names[view.slots[0]] if view.slots else "" for view in step.views())
            if step is not first:
                arrays[:] = _moved(step, tuple(arrays))
        else:
            stop = step.at + step.arity
            arrays[step.at : stop] = made = _applied(step, tuple(arrays[step.at : stop]), names[step.at])
            names = (*names[: step.at], *(names[step.at],) * len(made), *names[stop:])
            mx.eval(*arrays)
    done = tuple(mx.contiguous(array) for array in arrays)
    arrays.clear()
    mx.eval(*done)
    return done


def _moved(program: Program, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
    """Run moves: what stacks and joins whole arrays is made of them at once, with no stack on the way."""
    import mlx.core as mx

    orders = [whole_slots(view, program.in_specs) for view in program.views()]
    if None in orders:
        return program.apply(arrays, MlxAlgebra())
    flat = [array.reshape(-1) for array in arrays]
    made = (mx.concatenate([flat[slot] for slot in order or ()]) for order in orders)
    return tuple(each.reshape(spec.shape) for each, spec in zip(made, program.out_specs, strict=True))


def _applied(step: ValueStep, arrays: tuple[mx.array, ...], name: str) -> tuple[mx.array, ...]:
    try:
        return step.apply(arrays)
    except PlanError as error:
        seen = error.seen if error.tensor else f"{name}: {error.seen}"
        raise type(error)(
            seen,
            expected=error.expected,
            hint=error.hint,
            file=error.file,
            tensor=error.tensor or name,
            rule=error.rule,
            field=error.field,
        ) from error
