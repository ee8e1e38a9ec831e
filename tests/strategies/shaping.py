"""Draw ops that give tensors another shape, each with what it does in NumPy."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np
from hypothesis import strategies as st

from tests.strategies.cases import Applied, Drawn, Stage, each, either_sign
from tests.strategies.moves import some_shape
from tests.strategies.stages import alike, either_spelling, one_open, only
from weightloom.engine.ops import (
    Conv3dToLinear,
    Flatten,
    LinearToConv3d,
    Pad,
    Squeeze,
    Unflatten,
    Unpad,
    Unsqueeze,
)
from weightloom.engine.ops import Reshape as OpReshape


def reshapes(stage: Stage) -> Drawn:
    shape = alike(stage)
    if not shape:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        new = some_shape(Random(draw(st.integers(0, 1 << 16))), prod(shape)) or (1,)
        op = OpReshape(one_open(draw, new), one_open(draw, shape))
        return Applied(op, each(lambda x: x.reshape(new)))

    return step()


def flattens(stage: Stage) -> Drawn:
    shape = alike(stage)
    if not shape:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        start = draw(st.integers(0, len(shape) - 1))
        end = draw(st.integers(start, len(shape) - 1))
        sizes = one_open(draw, shape[start : end + 1])
        negative = draw(st.sampled_from(((0, 0), (len(shape), len(shape)), (0, len(shape)))))
        op = Flatten(start - negative[0], end - negative[1], sizes)
        new = (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :])
        return Applied(op, each(lambda x: x.reshape(new)))

    return step()


def unflattens(stage: Stage) -> Drawn:
    shape = alike(stage)
    if not shape:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        sizes = some_shape(Random(draw(st.integers(0, 1 << 16))), shape[dim]) or (1,)
        new = (*shape[:dim], *sizes, *shape[dim + 1 :])
        negative = draw(st.sampled_from((0, len(new))))
        op = Unflatten(dim - negative, dim + len(sizes) - 1 - negative, one_open(draw, sizes))
        return Applied(op, each(lambda x: x.reshape(new)))

    return step()


def squeezes(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    fitting = [dim for dim in range(min(map(len, shapes))) if all(shape[dim] == 1 for shape in shapes)]
    if not fitting:
        return None
    return st.sampled_from(fitting).map(lambda dim: Applied(Squeeze(dim), each(lambda x: np.squeeze(x, dim))))


def unsqueezes(stage: Stage) -> Drawn:
    most = min(len(shape) for part in stage for shape in part)
    if most > 5:
        return None
    return st.integers(0, most).map(lambda dim: Applied(Unsqueeze(dim), each(lambda x: np.expand_dims(x, dim))))


def to_linears(stage: Stage) -> Drawn:
    shape = alike(stage)
    if shape is None or len(shape) != 5:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        channels, *kernel = either_spelling(draw, shape[1:])
        op = Conv3dToLinear(channels, tuple(kernel))
        return Applied(op, each(lambda x: x.reshape(shape[0], prod(shape[1:]))))

    return step()


def to_convs(stage: Stage) -> Drawn:
    shape = alike(stage)
    if shape is None or len(shape) != 2:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        depth = draw(st.sampled_from([n for n in (1, 2, 3) if shape[1] % n == 0]))
        inner = (depth, 1, shape[1] // depth, 1)
        channels, *kernel = either_spelling(draw, inner)
        return Applied(LinearToConv3d(channels, tuple(kernel)), each(lambda x: x.reshape(shape[0], *inner)))

    return step()


def unpads(stage: Stage) -> Drawn:
    shape = only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        size = draw(st.integers(0, shape[dim]))
        op = Unpad(draw(either_sign(dim, len(shape))), *either_spelling(draw, (size, shape[dim])))
        kept, cut = (slice(None),) * dim + (slice(size),), (slice(None),) * dim + (slice(size, None),)
        leaves = lambda parts: [parts[0][0][cut]] if size < shape[dim] else []  # noqa: E731
        return Applied(op, lambda parts: [[parts[0][0][kept]]], leaves=leaves)

    return step()


def pads(stage: Stage) -> Drawn:
    shape = only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        size = shape[dim] + draw(st.integers(0, 3))
        op = Pad(draw(either_sign(dim, len(shape))), *either_spelling(draw, (size, shape[dim])))
        width = [(0, size - shape[dim] if n == dim else 0) for n in range(len(shape))]
        return Applied(op, lambda parts: [[np.pad(parts[0][0], width)]])

    return step()
