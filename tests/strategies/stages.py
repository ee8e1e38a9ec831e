"""What a stage of tensors is, and how sizes are spelt in the ops that are drawn for it."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from tests.strategies.cases import Shape, Stage


def only(stage: Stage) -> Shape | None:
    return stage[0][0] if len(stage) == 1 and len(stage[0]) == 1 and stage[0][0] else None


def alike(stage: Stage) -> Shape | None:
    """The shape of all tensors, if they have one."""
    shapes = {shape for part in stage for shape in part}
    return next(iter(shapes)) if len(shapes) == 1 else None


def either_spelling(draw: st.DrawFn, sizes: Shape) -> tuple[int | str, ...]:
    return tuple(draw(st.sampled_from((size, f"n{size}"))) if size < 257 else size for size in sizes)


def one_open(draw: st.DrawFn, sizes: Shape) -> tuple[int | str, ...]:
    """The same sizes, one perhaps left to be worked out."""
    spelt = either_spelling(draw, sizes)
    at = draw(st.integers(0, len(sizes))) if prod(sizes) else len(sizes)
    return (*spelt[:at], -1, *spelt[at + 1 :]) if at < len(sizes) else spelt
