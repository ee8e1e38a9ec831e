"""The forms in which a module goes on: MLX's tensors of the same numbers, MXFP8, or floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from weightloom.engine import ConversionOp, WeightConverter
from weightloom.engine.codings.coding import Coding, Native
from weightloom.engine.codings.mxfp8_codes import GROUP
from weightloom.engine.ops.coded import DequantizeCodes, KeepNative, RecodeMxfp8
from weightloom.engine.planning.composing.unpacking import Packed
from weightloom.plugins.formats.modules import WEIGHT, Place
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.quantization import PackedModule

MXFP4 = Quantization(4, 32, "mxfp4")
MXFP8 = Quantization(8, GROUP, "mxfp8")
SCALED_MXFP8 = Quantization(8, GROUP, "mxfp8", scaled=True)
NVFP4 = Quantization(4, 16, "nvfp4", scaled=True)
AFFINE_PARTS = ("weight", "scales", "biases")
PLAIN = ("weight", "scales")
SCALED = ("weight", "scales", "global_scale")


@dataclass(frozen=True, slots=True)
class Sources:
    """A module's tensors in a coding's order: `names`, and `place` of what they become."""

    place: Place
    names: tuple[str, ...]

    @property
    def patterns(self) -> tuple[str, ...]:
        """What stands behind the module's path in each name, as a pattern."""
        ends = (name.removeprefix(self.place.stem) for name in self.names)
        return tuple(end.replace(".", r"\.") or r"\.weight" for end in ends)


def affine(sources: Sources, coding: Native, bits: int, group: int) -> PackedModule:
    """Keep integers, as MLX packs them."""
    return kept(sources, coding, Quantization(bits, group), AFFINE_PARTS)


def kept(sources: Sources, coding: Native, how: Quantization, parts: Sequence[str]) -> PackedModule:
    """Keep the numbers, packed as MLX packs them: `parts` are its tensors."""
    return _module(sources, parts, KeepNative(coding), how)


def recoded(sources: Sources, coding: Coding) -> PackedModule:
    """Code the numbers anew, in MXFP8."""
    return replace(_module(sources, PLAIN, RecodeMxfp8(coding), MXFP8), rounded=True)


def floats(sources: Sources, coding: Coding) -> PackedModule:
    """Decode the numbers."""
    return _module(sources, (WEIGHT,), DequantizeCodes(coding), None)


def _module(sources: Sources, parts: Sequence[str], op: ConversionOp, how: Quantization | None) -> PackedModule:
    rule = _rule(sources.patterns, tuple(parts), op)
    return PackedModule(Packed(rule, sources.names, sources.place.parts(parts)), how)


@lru_cache(maxsize=256)
def _rule(patterns: tuple[str, ...], parts: tuple[str, ...], op: ConversionOp) -> WeightConverter:
    """Give one rule for all modules that are alike: of tens of thousands, planning works each rule out once."""
    return WeightConverter(patterns, tuple(rf"\.{part}" for part in parts), [op])
