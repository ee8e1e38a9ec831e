"""The ops that converters are built from."""

from weightloom.engine.ops.across import StackAcross as StackAcross
from weightloom.engine.ops.across import UnstackAcross as UnstackAcross
from weightloom.engine.ops.adding import Add as Add
from weightloom.engine.ops.asserting import AssertDims as AssertDims
from weightloom.engine.ops.base import ConversionOp as ConversionOp
from weightloom.engine.ops.channels import ChannelsFirst as ChannelsFirst
from weightloom.engine.ops.channels import ChannelsLast as ChannelsLast
from weightloom.engine.ops.conv import Conv3dToLinear as Conv3dToLinear
from weightloom.engine.ops.conv import LinearToConv3d as LinearToConv3d
from weightloom.engine.ops.cutting import Chunk as Chunk
from weightloom.engine.ops.cutting import Concatenate as Concatenate
from weightloom.engine.ops.cutting import Split as Split
from weightloom.engine.ops.dequantizing import DequantizeExperts as DequantizeExperts
from weightloom.engine.ops.diagonal import BlockDiagonal as BlockDiagonal
from weightloom.engine.ops.diagonal import CutDiagonal as CutDiagonal
from weightloom.engine.ops.gating import ResidualGate as ResidualGate
from weightloom.engine.ops.gating import ResidualWeights as ResidualWeights
from weightloom.engine.ops.ordering import Permute as Permute
from weightloom.engine.ops.ordering import Rearrange as Rearrange
from weightloom.engine.ops.padding import Pad as Pad
from weightloom.engine.ops.padding import Unpad as Unpad
from weightloom.engine.ops.permuting import Interleave as Interleave
from weightloom.engine.ops.permuting import PermuteForRope as PermuteForRope
from weightloom.engine.ops.permuting import Transpose as Transpose
from weightloom.engine.ops.scaling import Divide as Divide
from weightloom.engine.ops.scaling import Multiply as Multiply
from weightloom.engine.ops.shaping import Flatten as Flatten
from weightloom.engine.ops.shaping import Reshape as Reshape
from weightloom.engine.ops.shaping import Squeeze as Squeeze
from weightloom.engine.ops.shaping import Unflatten as Unflatten
from weightloom.engine.ops.shaping import Unsqueeze as Unsqueeze
from weightloom.engine.ops.stacking import MergeModulelist as MergeModulelist
from weightloom.engine.ops.stacking import SplitModulelist as SplitModulelist
from weightloom.engine.ops.viewing import BitView as BitView

__all__ = [
    "Add",
    "AssertDims",
    "BitView",
    "BlockDiagonal",
    "ChannelsFirst",
    "ChannelsLast",
    "Chunk",
    "Concatenate",
    "Conv3dToLinear",
    "ConversionOp",
    "CutDiagonal",
    "DequantizeExperts",
    "Divide",
    "Flatten",
    "Interleave",
    "LinearToConv3d",
    "MergeModulelist",
    "Multiply",
    "Pad",
    "Permute",
    "PermuteForRope",
    "Rearrange",
    "Reshape",
    "ResidualGate",
    "ResidualWeights",
    "Split",
    "SplitModulelist",
    "Squeeze",
    "StackAcross",
    "Transpose",
    "Unflatten",
    "Unpad",
    "Unsqueeze",
    "UnstackAcross",
]
