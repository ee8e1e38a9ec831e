"""Single steps: an op that fits a stage of tensors, beside what NumPy does for it. A new op joins OP_STEPS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise, product
from math import prod
from random import Random

import numpy as np
from hypothesis import strategies as st

from tests.strategies.cases import Applied, Array, Drawn, Parts, Shape, Stage, _either_sign, each, flat
from tests.strategies.moves import cuts_of, some_shape
from weightloom.engine.ops import (
    BlockDiagonal,
    ChannelsFirst,
    ChannelsLast,
    Chunk,
    Concatenate,
    Conv3dToLinear,
    ConversionOp,
    CutDiagonal,
    Flatten,
    Interleave,
    LinearToConv3d,
    MergeModulelist,
    Pad,
    PermuteForRope,
    Rearrange,
    Split,
    SplitModulelist,
    Squeeze,
    StackAcross,
    Transpose,
    Unflatten,
    Unpad,
    Unsqueeze,
    UnstackAcross,
)
from weightloom.engine.ops import Permute as OpPermute
from weightloom.engine.ops import Reshape as OpReshape


def _only(stage: Stage) -> Shape | None:
    return stage[0][0] if len(stage) == 1 and len(stage[0]) == 1 and stage[0][0] else None


def _chunks(stage: Stage) -> Drawn:
    shape = _only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        count = draw(st.sampled_from([n for n in range(1, 5) if shape[dim] % n == 0]))
        attribute = draw(st.sampled_from((None, f"n{count}")))
        op = Chunk(draw(_either_sign(dim, len(shape))), attribute)
        if attribute is None:
            return Applied(op, lambda parts: [[a] for a in np.split(parts[0][0], count, dim)], spreads=True)
        return Applied(op, lambda parts: [list(np.split(parts[0][0], count, dim))])

    return step()


def _splits(stage: Stage) -> Drawn:
    shape = _only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        sizes = draw(cuts_of(shape[dim]))
        spelt = tuple(draw(st.sampled_from((size, f"n{size}"))) for size in sizes)
        op = Split(draw(_either_sign(dim, len(shape))), draw(st.sampled_from((sizes, spelt, None))))
        ends = list(accumulate(sizes))[:-1]
        return Applied(op, lambda parts: [[a] for a in np.split(parts[0][0], ends, dim)], spreads=True)

    return step()


def _joins(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    first = shapes[0]
    fitting = [
        dim
        for dim in range(len(first))
        if len({(len(s), s[:dim], s[dim + 1 :]) for s in shapes}) == 1 and len(shapes) < 30
    ]
    if not fitting:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.sampled_from(fitting))
        sizes = tuple(shape[dim] for shape in shapes)
        known = st.just(sizes) if len(set(sizes)) > 1 else st.sampled_from((None, sizes, "targets"))
        op = Concatenate(draw(_either_sign(dim, len(first))), sizes=draw(known))
        return Applied(op, lambda parts: [[np.concatenate(flat(parts), dim)]])

    return step()


def _stacks(stage: Stage) -> Drawn:
    if any(len(set(part)) != 1 or not part for part in stage):
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        ndim = min(len(part[0]) for part in stage)
        dim = draw(st.integers(0, ndim))
        same = len({len(part[0]) for part in stage}) == 1
        op = MergeModulelist(draw(_either_sign(dim, ndim + 1)) if same else dim)
        return Applied(op, lambda parts: [[np.stack(part, dim)] for part in parts])

    return step()


def _unstacks(stage: Stage) -> Drawn:
    if any(len(part) != 1 for part in stage):
        return None
    ndim = min(len(part[0]) for part in stage)
    fitting = [dim for dim in range(ndim) if all(0 < part[0][dim] < 9 for part in stage)]
    if not fitting:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.sampled_from(fitting))
        run = lambda parts: [[np.take(part[0], i, dim) for i in range(part[0].shape[dim])] for part in parts]  # noqa: E731
        return Applied(SplitModulelist(dim), run)

    return step()


def _transposes(stage: Stage) -> Drawn:
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


def _interleaves(stage: Stage) -> Drawn:
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


def _ropes(stage: Stage) -> Drawn:
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


def _alike(stage: Stage) -> Shape | None:
    """The shape of all tensors, if they have one."""
    shapes = {shape for part in stage for shape in part}
    return next(iter(shapes)) if len(shapes) == 1 else None


def _either_spelling(draw: st.DrawFn, sizes: Shape) -> tuple[int | str, ...]:
    return tuple(draw(st.sampled_from((size, f"n{size}"))) if size < 257 else size for size in sizes)


def _one_open(draw: st.DrawFn, sizes: Shape) -> tuple[int | str, ...]:
    """The same sizes, one perhaps left to be worked out."""
    spelt = _either_spelling(draw, sizes)
    at = draw(st.integers(0, len(sizes))) if prod(sizes) else len(sizes)
    return (*spelt[:at], -1, *spelt[at + 1 :]) if at < len(sizes) else spelt


def _reshapes(stage: Stage) -> Drawn:
    shape = _alike(stage)
    if not shape:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        new = some_shape(Random(draw(st.integers(0, 1 << 16))), prod(shape)) or (1,)
        op = OpReshape(_one_open(draw, new), _one_open(draw, shape))
        return Applied(op, each(lambda x: x.reshape(new)))

    return step()


def _flattens(stage: Stage) -> Drawn:
    shape = _alike(stage)
    if not shape:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        start = draw(st.integers(0, len(shape) - 1))
        end = draw(st.integers(start, len(shape) - 1))
        sizes = _one_open(draw, shape[start : end + 1])
        negative = draw(st.sampled_from(((0, 0), (len(shape), len(shape)), (0, len(shape)))))
        op = Flatten(start - negative[0], end - negative[1], sizes)
        new = (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :])
        return Applied(op, each(lambda x: x.reshape(new)))

    return step()


def _unflattens(stage: Stage) -> Drawn:
    shape = _alike(stage)
    if not shape:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        sizes = some_shape(Random(draw(st.integers(0, 1 << 16))), shape[dim]) or (1,)
        new = (*shape[:dim], *sizes, *shape[dim + 1 :])
        negative = draw(st.sampled_from((0, len(new))))
        op = Unflatten(dim - negative, dim + len(sizes) - 1 - negative, _one_open(draw, sizes))
        return Applied(op, each(lambda x: x.reshape(new)))

    return step()


def _squeezes(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    fitting = [dim for dim in range(min(map(len, shapes))) if all(shape[dim] == 1 for shape in shapes)]
    if not fitting:
        return None
    return st.sampled_from(fitting).map(lambda dim: Applied(Squeeze(dim), each(lambda x: np.squeeze(x, dim))))


def _unsqueezes(stage: Stage) -> Drawn:
    most = min(len(shape) for part in stage for shape in part)
    if most > 5:
        return None
    return st.integers(0, most).map(lambda dim: Applied(Unsqueeze(dim), each(lambda x: np.expand_dims(x, dim))))


def _permutes(stage: Stage) -> Drawn:
    counts = {len(shape) for part in stage for shape in part}
    if len(counts) > 1 or not min(counts):
        return None
    orders = st.permutations(range(min(counts)))
    return orders.map(lambda axes: Applied(OpPermute(tuple(axes)), each(lambda x: x.transpose(axes))))


def _rearranges(stage: Stage) -> Drawn:
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


def _to_linears(stage: Stage) -> Drawn:
    shape = _alike(stage)
    if shape is None or len(shape) != 5:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        channels, *kernel = _either_spelling(draw, shape[1:])
        op = Conv3dToLinear(channels, tuple(kernel))
        return Applied(op, each(lambda x: x.reshape(shape[0], prod(shape[1:]))))

    return step()


def _to_convs(stage: Stage) -> Drawn:
    shape = _alike(stage)
    if shape is None or len(shape) != 2:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        depth = draw(st.sampled_from([n for n in (1, 2, 3) if shape[1] % n == 0]))
        inner = (depth, 1, shape[1] // depth, 1)
        channels, *kernel = _either_spelling(draw, inner)
        return Applied(LinearToConv3d(channels, tuple(kernel)), each(lambda x: x.reshape(shape[0], *inner)))

    return step()


def _channels_first(stage: Stage) -> Drawn:
    return _turned(stage, ChannelsFirst, -1, 1)


def _channels_last(stage: Stage) -> Drawn:
    return _turned(stage, ChannelsLast, 1, -1)


def _turned(stage: Stage, op: Callable[[int | str], ConversionOp], old: int, new: int) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    if any(len(shape) < 3 for shape in shapes) or len(sizes := {shape[old] for shape in shapes}) > 1 or 0 in sizes:
        return None
    size = min(sizes)
    return st.sampled_from((size, f"n{size}")).map(
        lambda channels: Applied(op(channels), each(lambda x: np.moveaxis(x, old, new)))
    )


def _unpads(stage: Stage) -> Drawn:
    shape = _only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        size = draw(st.integers(0, shape[dim]))
        op = Unpad(draw(_either_sign(dim, len(shape))), *_either_spelling(draw, (size, shape[dim])))
        kept, cut = (slice(None),) * dim + (slice(size),), (slice(None),) * dim + (slice(size, None),)
        leaves = lambda parts: [parts[0][0][cut]] if size < shape[dim] else []  # noqa: E731
        return Applied(op, lambda parts: [[parts[0][0][kept]]], leaves=leaves)

    return step()


def _pads(stage: Stage) -> Drawn:
    shape = _only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        size = shape[dim] + draw(st.integers(0, 3))
        op = Pad(draw(_either_sign(dim, len(shape))), *_either_spelling(draw, (size, shape[dim])))
        width = [(0, size - shape[dim] if n == dim else 0) for n in range(len(shape))]
        return Applied(op, lambda parts: [[np.pad(parts[0][0], width)]])

    return step()


def _stacks_across(stage: Stage) -> Drawn:
    shape, lengths = _alike(stage), {len(part) for part in stage}
    if not shape or len(lengths) > 1:
        return None
    length = min(lengths)

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        targets = draw(st.sampled_from([n for n in range(1, 6) if length % n == 0]))
        stack, join = draw(st.integers(0, len(shape))), draw(st.integers(0, len(shape)))
        run = length // targets

        def made(parts: Parts, t: int) -> Array:
            return np.concatenate([np.stack(part[t * run : (t + 1) * run], stack) for part in parts], join)

        op = StackAcross(draw(_either_sign(stack, len(shape) + 1)), draw(_either_sign(join, len(shape) + 1)))
        return Applied(op, lambda parts: [[made(parts, t)] for t in range(targets)], spreads=True)

    return step()


def _unstacks_across(stage: Stage) -> Drawn:
    fitting = _unstackable(stage)
    if not fitting:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        stack, join, lists = draw(st.sampled_from(fitting))

        def made(parts: Parts, k: int) -> list[Array]:
            pieces = [np.split(part[0], lists, join)[k] for part in parts]
            return [np.take(piece, i, stack) for piece in pieces for i in range(piece.shape[stack])]

        run = lambda parts: [made(parts, k) for k in range(lists)]  # noqa: E731
        return Applied(UnstackAcross(stack, join), run, spreads=True)

    return step()


def _unstackable(stage: Stage) -> list[tuple[int, int, int]]:
    """Where single tensors, unlike perhaps, can be cut and unstacked: (stacked axis, cut axis, pieces)."""
    shapes = [part[0] for part in stage]
    if any(len(part) > 1 for part in stage) or len({len(shape) for shape in shapes}) > 1:
        return []
    axes = range(len(shapes[0]))
    return [
        (stack, join, lists)
        for stack, join, lists in product(axes, axes, (1, 2, 3))
        if all(shape[join] and shape[join] % lists == 0 for shape in shapes)
        if len(runs := {shape[stack] // (lists if stack == join else 1) for shape in shapes}) == 1
        if 0 < min(runs) < 9
    ]


def _diagonals(stage: Stage) -> Drawn:
    shapes = [shape for part in stage for shape in part]
    if len(shapes) > 8 or min(map(len, shapes)) < 2 or len({(len(shape), shape[:-2]) for shape in shapes}) > 1:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        sizes = [tuple(shape[dim] for shape in shapes) for dim in (-2, -1)]
        spelt = [draw(st.sampled_from((None, each) if len(set(each)) == 1 else (each,))) for each in sizes]
        return Applied(BlockDiagonal(*spelt), lambda parts: [[_block_diagonal(flat(parts))]])

    return step()


def _block_diagonal(blocks: list[Array]) -> Array:
    sizes = [sum(block.shape[dim] for block in blocks) for dim in (-2, -1)]
    found = np.zeros((*blocks[0].shape[:-2], *sizes), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        found[..., row : row + block.shape[-2], column : column + block.shape[-1]] = block
        row, column = row + block.shape[-2], column + block.shape[-1]
    return found


def _cuts_of_diagonals(stage: Stage) -> Drawn:
    shape = _only(stage)
    if shape is None or len(shape) < 2:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        rows = draw(cuts_of(shape[-2]))
        ends = sorted(draw(st.lists(st.integers(0, shape[-1]), min_size=len(rows) - 1, max_size=len(rows) - 1)))
        columns = tuple(b - a for a, b in pairwise([0, *ends, shape[-1]]))
        op = CutDiagonal(_either_spelling(draw, rows), _either_spelling(draw, columns))

        def bands(parts: Parts) -> list[list[Array]]:
            found = np.split(parts[0][0], list(accumulate(rows))[:-1], -2)
            return [
                np.split(band, [start, start + size], -1)
                for band, start, size in zip(found, [0, *ends], columns, strict=True)
            ]

        def beside(parts: Parts) -> list[Array]:
            return [band[side] for band in bands(parts) for side in (0, 2) if band[side].shape[-1]]

        return Applied(op, lambda parts: [[band[1]] for band in bands(parts)], spreads=True, leaves=beside)

    return step()


OP_STEPS: Mapping[type[ConversionOp], Callable[[Stage], Drawn]] = {
    BlockDiagonal: _diagonals,
    CutDiagonal: _cuts_of_diagonals,
    Chunk: _chunks,
    Split: _splits,
    Concatenate: _joins,
    MergeModulelist: _stacks,
    SplitModulelist: _unstacks,
    Transpose: _transposes,
    Interleave: _interleaves,
    PermuteForRope: _ropes,
    OpReshape: _reshapes,
    Flatten: _flattens,
    Unflatten: _unflattens,
    Squeeze: _squeezes,
    Unsqueeze: _unsqueezes,
    OpPermute: _permutes,
    Rearrange: _rearranges,
    Conv3dToLinear: _to_linears,
    LinearToConv3d: _to_convs,
    ChannelsFirst: _channels_first,
    ChannelsLast: _channels_last,
    Unpad: _unpads,
    Pad: _pads,
    StackAcross: _stacks_across,
    UnstackAcross: _unstacks_across,
}
# They change values, which unsigned integers cannot follow; tests/engine/ops/test_ops_values.py has them.
