"""The ops that converters are built from; each is imported when it is first asked for."""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.engine.ops.across import StackAcross as StackAcross
    from weightloom.engine.ops.across import UnstackAcross as UnstackAcross
    from weightloom.engine.ops.adding import Add as Add
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

_HOME = {
    "across": (
        "StackAcross",
        "UnstackAcross",
    ),
    "adding": ("Add",),
    "base": ("ConversionOp",),
    "channels": (
        "ChannelsFirst",
        "ChannelsLast",
    ),
    "conv": (
        "Conv3dToLinear",
        "LinearToConv3d",
    ),
    "cutting": (
        "Chunk",
        "Concatenate",
        "Split",
    ),
    "dequantizing": ("DequantizeExperts",),
    "diagonal": (
        "BlockDiagonal",
        "CutDiagonal",
    ),
    "gating": (
        "ResidualGate",
        "ResidualWeights",
    ),
    "ordering": (
        "Permute",
        "Rearrange",
    ),
    "padding": (
        "Pad",
        "Unpad",
    ),
    "permuting": (
        "Interleave",
        "PermuteForRope",
        "Transpose",
    ),
    "scaling": (
        "Divide",
        "Multiply",
    ),
    "shaping": (
        "Flatten",
        "Reshape",
        "Squeeze",
        "Unflatten",
        "Unsqueeze",
    ),
    "stacking": (
        "MergeModulelist",
        "SplitModulelist",
    ),
    "viewing": ("BitView",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)

    def __dir__() -> list[str]:
        return __all__
