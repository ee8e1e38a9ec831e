"""What is known of tensors, followed through a program: from where each result comes, and how it is packed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.steps import Pack
from weightloom.engine.views.moves import Move
from weightloom.engine.views.program import Program, ValueStep, infer_step

T = TypeVar("T")


class _Following(Generic[T]):
    """An algebra that moves what is known of arrays in their place."""

    def reshape(self, x: frozenset[T], shape: tuple[int, ...]) -> frozenset[T]:
        """The same."""
        return x

    def permute(self, x: frozenset[T], axes: tuple[int, ...]) -> frozenset[T]:
        """The same."""
        return x

    def cut(self, x: frozenset[T], dim: int, start: int, stop: int) -> frozenset[T]:
        """The same."""
        return x

    def join(self, xs: Sequence[frozenset[T]], dim: int) -> frozenset[T]:
        """All of them."""
        return frozenset[T]().union(*xs)


def packings(program: Program) -> tuple[frozenset[Quantization], ...]:
    """Give, for each result, all ways in which what it is made of is packed; none for what is plain."""

    def made(step: ValueStep, taken: frozenset[Quantization]) -> frozenset[Quantization]:
        return frozenset([step.how]) if isinstance(step, Pack) else taken

    return _followed(program, (frozenset[Quantization](),) * len(program.in_specs), made)


def origins(program: Program) -> tuple[frozenset[int], ...]:
    """Give, for each result, the numbers of all slots that go into it."""
    sources = tuple(frozenset([slot]) for slot in range(len(program.in_specs)))
    return _followed(program, sources, lambda _, taken: taken)


def _followed(
    program: Program, slots: tuple[frozenset[T], ...], made: Callable[[ValueStep, frozenset[T]], frozenset[T]]
) -> tuple[frozenset[T], ...]:
    specs = program.in_specs
    for step in program.moves:
        after = infer_step(step, specs)
        if isinstance(step, Move):
            slots = step.apply(slots, _Following[T]())
        else:
            stop = step.at + step.arity
            count = len(after) - len(specs) + step.arity
            taken = frozenset[T]().union(*slots[step.at : stop])
            slots = (*slots[: step.at], *[made(step, taken)] * count, *slots[stop:])
        specs = after
    return slots
