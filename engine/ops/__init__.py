"""The ops that converters are built from."""

from weightloom.engine.ops.base import ConversionOp as ConversionOp
from weightloom.engine.ops.cutting import Chunk as Chunk
from weightloom.engine.ops.cutting import Concatenate as Concatenate
from weightloom.engine.ops.cutting import Split as Split
from weightloom.engine.ops.permuting import Interleave as Interleave
from weightloom.engine.ops.permuting import PermuteForRope as PermuteForRope
from weightloom.engine.ops.permuting import Transpose as Transpose
from weightloom.engine.ops.stacking import MergeModulelist as MergeModulelist
from weightloom.engine.ops.stacking import SplitModulelist as SplitModulelist

__all__ = [
    "Chunk",
    "Concatenate",
    "ConversionOp",
    "Interleave",
    "MergeModulelist",
    "PermuteForRope",
    "Split",
    "SplitModulelist",
    "Transpose",
]
