"""Which quantization each result of a program has: followed from the step that packs through the moves behind it."""

from __future__ import annotations

from collections.abc import Sequence

from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.steps import Pack
from weightloom.engine.views.moves import Move
from weightloom.engine.views.program import Program, infer_step

Labels = frozenset[Quantization]
_NONE: Labels = frozenset()


class _Following:
    """An algebra that moves what is known of arrays in their place."""

    def reshape(self, x: Labels, shape: tuple[int, ...]) -> Labels:
        """The same."""
        return x

    def permute(self, x: Labels, axes: tuple[int, ...]) -> Labels:
        """The same."""
        return x

    def cut(self, x: Labels, dim: int, start: int, stop: int) -> Labels:
        """The same."""
        return x

    def join(self, xs: Sequence[Labels], dim: int) -> Labels:
        """All of them."""
        return _NONE.union(*xs)


def packings(program: Program) -> tuple[Labels, ...]:
    """Give, for each result, all ways in which what it is made of is packed; none for what is plain."""
    slots: tuple[Labels, ...] = (_NONE,) * len(program.in_specs)
    specs = program.in_specs
    for step in program.moves:
        after = infer_step(step, specs)
        if isinstance(step, Move):
            slots = step.apply(slots, _Following())
        else:
            stop = step.at + step.arity
            made = len(after) - len(specs) + step.arity
            label = frozenset([step.how]) if isinstance(step, Pack) else _NONE.union(*slots[step.at : stop])
            slots = (*slots[: step.at], *[label] * made, *slots[stop:])
        specs = after
    return slots
