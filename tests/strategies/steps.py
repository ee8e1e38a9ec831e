"""Single steps: an op that fits a stage of tensors, beside what NumPy does for it. A new op joins OP_STEPS."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.strategies.cases import Drawn, Stage
from tests.strategies.gathering import (
    chunks,
    cuts_of_diagonals,
    diagonals,
    joins,
    splits,
    stacks,
    stacks_across,
    unstacks,
    unstacks_across,
)
from tests.strategies.ordering import (
    channels_first,
    channels_last,
    interleaves,
    permutes,
    rearranges,
    ropes,
    transposes,
)
from tests.strategies.shaping import (
    flattens,
    pads,
    reshapes,
    squeezes,
    to_convs,
    to_linears,
    unflattens,
    unpads,
    unsqueezes,
)
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

OP_STEPS: Mapping[type[ConversionOp], Callable[[Stage], Drawn]] = {
    BlockDiagonal: diagonals,
    CutDiagonal: cuts_of_diagonals,
    Chunk: chunks,
    Split: splits,
    Concatenate: joins,
    MergeModulelist: stacks,
    SplitModulelist: unstacks,
    Transpose: transposes,
    Interleave: interleaves,
    PermuteForRope: ropes,
    OpReshape: reshapes,
    Flatten: flattens,
    Unflatten: unflattens,
    Squeeze: squeezes,
    Unsqueeze: unsqueezes,
    OpPermute: permutes,
    Rearrange: rearranges,
    Conv3dToLinear: to_linears,
    LinearToConv3d: to_convs,
    ChannelsFirst: channels_first,
    ChannelsLast: channels_last,
    Unpad: unpads,
    Pad: pads,
    StackAcross: stacks_across,
    UnstackAcross: unstacks_across,
}
# They change values, which unsigned integers cannot follow; tests/engine/ops/test_ops_values.py has them.
