"""Draw ops that cut, join and stack tensors, each with what it does in NumPy."""

from __future__ import annotations

from itertools import accumulate, pairwise, product

import numpy as np
from hypothesis import strategies as st

from tests.strategies.cases import Applied, Array, Drawn, Parts, Stage, either_sign, flat
from tests.strategies.moves import cuts_of
from tests.strategies.stages import alike, either_spelling, only
from weightloom.engine.ops import (
    BlockDiagonal,
    Chunk,
    Concatenate,
    CutDiagonal,
    MergeModulelist,
    Split,
    SplitModulelist,
    StackAcross,
    UnstackAcross,
)


def chunks(stage: Stage) -> Drawn:
    shape = only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        count = draw(st.sampled_from([n for n in range(1, 5) if shape[dim] % n == 0]))
        attribute = draw(st.sampled_from((None, f"n{count}")))
        op = Chunk(draw(either_sign(dim, len(shape))), attribute)
        if attribute is None:
            return Applied(op, lambda parts: [[a] for a in np.split(parts[0][0], count, dim)], spreads=True)
        return Applied(op, lambda parts: [list(np.split(parts[0][0], count, dim))])

    return step()


def splits(stage: Stage) -> Drawn:
    shape = only(stage)
    if shape is None:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        dim = draw(st.integers(0, len(shape) - 1))
        sizes = draw(cuts_of(shape[dim]))
        spelt = tuple(draw(st.sampled_from((size, f"n{size}"))) for size in sizes)
        op = Split(draw(either_sign(dim, len(shape))), draw(st.sampled_from((sizes, spelt, None))))
        ends = list(accumulate(sizes))[:-1]
        return Applied(op, lambda parts: [[a] for a in np.split(parts[0][0], ends, dim)], spreads=True)

    return step()


def joins(stage: Stage) -> Drawn:
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
        op = Concatenate(draw(either_sign(dim, len(first))), sizes=draw(known))
        return Applied(op, lambda parts: [[np.concatenate(flat(parts), dim)]])

    return step()


def stacks(stage: Stage) -> Drawn:
    if any(len(set(part)) != 1 or not part for part in stage):
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        ndim = min(len(part[0]) for part in stage)
        dim = draw(st.integers(0, ndim))
        same = len({len(part[0]) for part in stage}) == 1
        op = MergeModulelist(draw(either_sign(dim, ndim + 1)) if same else dim)
        return Applied(op, lambda parts: [[np.stack(part, dim)] for part in parts])

    return step()


def unstacks(stage: Stage) -> Drawn:
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


def stacks_across(stage: Stage) -> Drawn:
    shape, lengths = alike(stage), {len(part) for part in stage}
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

        op = StackAcross(draw(either_sign(stack, len(shape) + 1)), draw(either_sign(join, len(shape) + 1)))
        return Applied(op, lambda parts: [[made(parts, t)] for t in range(targets)], spreads=True)

    return step()


def unstacks_across(stage: Stage) -> Drawn:
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


def diagonals(stage: Stage) -> Drawn:
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


def cuts_of_diagonals(stage: Stage) -> Drawn:
    shape = only(stage)
    if shape is None or len(shape) < 2:
        return None

    @st.composite
    def step(draw: st.DrawFn) -> Applied:
        rows = draw(cuts_of(shape[-2]))
        ends = sorted(draw(st.lists(st.integers(0, shape[-1]), min_size=len(rows) - 1, max_size=len(rows) - 1)))
        columns = tuple(b - a for a, b in pairwise([0, *ends, shape[-1]]))
        op = CutDiagonal(either_spelling(draw, rows), either_spelling(draw, columns))

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
