"""Chains of ops on tensors that they fit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from tests.strategies.cases import WHOLE_BYTE_DTYPES, Applied, OpCase, Parts, Stage
from tests.strategies.steps import OP_STEPS
from weightloom.engine.ops import (
    Add,
    BitView,
    BlockDiagonal,
    ChannelsFirst,
    ChannelsLast,
    Chunk,
    Concatenate,
    Conv3dToLinear,
    ConversionOp,
    CutDiagonal,
    DequantizeExperts,
    Divide,
    Interleave,
    LinearToConv3d,
    MergeModulelist,
    Multiply,
    Pad,
    PermuteForRope,
    ResidualGate,
    ResidualWeights,
    Split,
    SplitModulelist,
    StackAcross,
    Unpad,
    UnstackAcross,
)

_CLOSED = (
    Concatenate,
    Chunk,
    Split,
    SplitModulelist,
    MergeModulelist,
    StackAcross,
    UnstackAcross,
    Unpad,
    Pad,
    BlockDiagonal,
    CutDiagonal,
)
VALUE_OPS: frozenset[type[ConversionOp]] = frozenset(
    {Add, BitView, DequantizeExperts, Divide, Multiply, ResidualGate, ResidualWeights}
)
_NDIMS: Mapping[type[ConversionOp] | None, tuple[int, int]] = {
    Conv3dToLinear: (5, 5),
    LinearToConv3d: (2, 2),
    ChannelsFirst: (3, 4),
    ChannelsLast: (3, 4),
}


@st.composite
def stages(draw: st.DrawFn, ndims: tuple[int, int] = (0, 3)) -> Stage:
    """Tensors to start from: of one pattern or several, single or in lists, alike but for one dim."""
    sizes = (1, 2, 3, 4, 8, 0) if ndims[1] < 4 else (1, 2, 3)
    shape = tuple(draw(st.lists(st.sampled_from(sizes), min_size=ndims[0], max_size=ndims[1])))
    count = draw(st.integers(1, 3))
    length = draw(st.sampled_from((2, 5)))
    items = [draw(st.sampled_from((1, 1, length))) for _ in range(count)]
    dim = draw(st.integers(0, len(shape) - 1)) if shape else None
    found = []
    for item in items:
        size = draw(st.sampled_from((shape[dim], 2, 4, 12))) if dim is not None else 0
        own = shape if dim is None else (*shape[:dim], size, *shape[dim + 1 :])
        found.append((own,) * item)
    return tuple(found)


@st.composite
def op_cases(draw: st.DrawFn, first: type[ConversionOp] | None = None, max_ops: int = 1) -> OpCase:
    """Chains of ops that fit; `first` fixes the class of the first one."""
    fits = OP_STEPS[first] if first else lambda stage: st.nothing()
    stage = start = draw(stages(_NDIMS.get(first, (0, 3))).filter(lambda stage: fits(stage) is not None))
    dtype = draw(st.sampled_from(WHOLE_BYTE_DTYPES))
    steps: list[Applied] = []
    for number in range(draw(st.integers(1, max_ops))):
        spread = any(step.spreads for step in steps)
        classes = [first] if first and number == 0 else list(OP_STEPS)
        if any(isinstance(step.op, Split) and step.op.sizes is None for step in steps):
            # Sizes from the parameters are those of the dim that is cut: no later op may move it.
            classes = [Interleave, PermuteForRope]
        found = [OP_STEPS[c](stage) for c in classes if c is not None and not (spread and c in _CLOSED)]
        fitting = [strategy for strategy in found if strategy is not None]
        if not fitting:
            break
        steps.append(draw(st.one_of(fitting)))
        arrays: Parts = [[np.zeros(shape, "u1") for shape in part] for part in stage]
        stage = tuple(tuple(array.shape for array in part) for part in steps[-1].run(arrays))
    return OpCase(dtype, start, tuple(steps))
