"""Draw ops that put axes and rows in another order, each with what it does in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from tests.strategies.cases import Applied, Array, Drawn, Stage, each
from weightloom.engine.ops import (
    ChannelsFirst,
    ChannelsLast,
    ConversionOp,
    Interleave,
    PermuteForRope,
    Rearrange,
    Transpose,
)
from weightloom.engine.ops import Permute as OpPermute


def transposes(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    ndim = min(map(len, shapes))
    if ndim < 1:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        a, b = draw(st.integers(0, ndim - 1)), draw(st.integers(0, ndim - 1))
        return Applied(Transpose(a, b), each(lambda x: np.swapaxes(x, a, b)))

    return step()


def halves(x: Array, dim: int, inverse: bool) -> Array:
    """Rows 0, 2, 4, ..., 1, 3, 5, ... of one dim; or back."""
    x = np.moveaxis(x, dim, 0)
    if inverse:
        out = np.empty_like(x)
        out[0::2], out[1::2] = x[: len(x) // 2], x[len(x) // 2 :]
    else:
        out = np.concatenate([x[0::2], x[1::2]])
    return np.moveaxis(out, 0, dim)


def interleaves(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    ndim = min(map(len, shapes))
    fitting = [dim for dim in range(ndim) if all(shape[dim] % 2 == 0 for shape in shapes)]
    if not fitting:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim, inverse = draw(st.sampled_from(fitting)), draw(st.booleans())
        return Applied(Interleave(dim, inverse), each(lambda x: halves(x, dim, inverse)))

    return step()


def by_head(x: Array, heads: int, inverse: bool) -> Array:
    """Each head's rows, pairs to halves; or back."""
    return np.concatenate([halves(head, 0, inverse) for head in np.split(x, heads)])


def ropes(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    if any(not shape or shape[0] % 2 for shape in shapes):
        return None
    own = all(shape[0] % 4 == 0 and shape[0] for shape in shapes)
    counts = [n for n in (1, 2, 3, 4) if all(shape[0] % (2 * n) == 0 for shape in shapes)]

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        count, inverse = draw(st.sampled_from(counts)), draw(st.booleans())
        heads = draw(st.sampled_from((count, f"n{count}", *([None] * 2 if own else []))))
        op = PermuteForRope(heads=heads, inverse=inverse)
        return Applied(op, each(lambda x: by_head(x, len(x) // 4 if heads is None else count, inverse)))

    return step()


def permutes(stage: Stage) -> Drawn:
    counts = {len(shape) for part in stage for shape in part}
    if len(counts) > 1 or not min(counts):
        return None
    orders = st.permutations(range(min(counts)))
    return orders.map(lambda axes: Applied(OpPermute(tuple(axes)), each(lambda x: x.transpose(axes))))


def rearranges(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    fitting = [
        (dim, count)
        for dim in range(min(map(len, shapes)))
        for count in (1, 2, 3, 4)
        if all(shape[dim] % count == 0 for shape in shapes)
    ]
    if not fitting:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim, count = draw(st.sampled_from(fitting))
        order = tuple(draw(st.permutations(range(count))))

        def run(x: Array) -> Array:
            blocks = np.split(x, count, dim)
            return np.concatenate([blocks[n] for n in order], dim)

        return Applied(Rearrange(dim, order), each(run))

    return step()


def channels_first(stage: Stage) -> Drawn:
    return _turned(stage, ChannelsFirst, -1, 1)


def channels_last(stage: Stage) -> Drawn:
    return _turned(stage, ChannelsLast, 1, -1)


def _turned(stage: Stage, op: Callable[[int | str], ConversionOp], old: int, new: int) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    if any(len(shape) < 3 for shape in shapes) or len(sizes := {shape[old] for shape in shapes}) > 1 or 0 in sizes:
        return None
    size = min(sizes)
    return st.sampled_from((size, f"n{size}")).map(
        lambda channels: Applied(op(channels), each(lambda x: np.moveaxis(x, old, new)))
    )
