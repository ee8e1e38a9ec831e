"""The ops of quantized modules, by a coding: DequantizeCodes, RecodeMxfp8, KeepNative.

Made by quantization formats; a rule file has no way to write a coding.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.codings.coding import Coding, Native
from weightloom.engine.ops.base import ConversionOp
from weightloom.engine.ops.chain import Chain
from weightloom.engine.steps.coded_steps import Decode, KeepCodes, ToMxfp8
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import ValueStep


@dataclass(frozen=True, slots=True)
class _OnCodes(ConversionOp):
    """One value step on all tensors of a module."""

    needs_real_shapes: ClassVar[bool] = True

    def lower(self, chain: Chain) -> None:
        """Add the step; what it makes are the targets, in order."""
        chain.gather_parts("codes")
        specs = chain.parts[0].specs
        chain.value(self.step(specs), 0, 0, len(specs))
        chain.spread_part([target.label for target in chain.context.targets])

    @abstractmethod
    def step(self, taken: Specs) -> ValueStep:
        """Give the step on these tensors."""


@dataclass(frozen=True, slots=True)
class DequantizeCodes(_OnCodes):
    """A quantized module to floats of `dtype`, one tensor. A save writes the source's own bytes back."""

    coding: Coding
    dtype: str = "BF16"

    def step(self, taken: Specs) -> ValueStep:
        """Decode."""
        return Decode(0, self.coding, self.dtype, taken)


@dataclass(frozen=True, slots=True)
class RecodeMxfp8(_OnCodes):
    """A quantized module to MXFP8, words and powers. A save writes the source's own bytes back."""

    coding: Coding

    def step(self, taken: Specs) -> ValueStep:
        """Decode, and code anew."""
        return ToMxfp8(0, self.coding, taken)


@dataclass(frozen=True, slots=True)
class KeepNative(_OnCodes):
    """A quantized module to MLX's tensors of the same numbers."""

    coding: Native

    def step(self, taken: Specs) -> ValueStep:
        """Put the codes in MLX's order."""
        return KeepCodes(0, self.coding, taken)
