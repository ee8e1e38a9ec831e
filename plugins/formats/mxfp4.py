"""MXFP4: blocks and scales of stacked experts as gpt-oss has them, or a weight and a scale for each module.

A stack NAME is `NAME_blocks` (..., rows, groups, 16) and `NAME_scales` (..., rows, groups); its floats have rows and
columns the other way round. A module X is `X.weight` (rows, columns / 2) and `X.scale` or `X.weight_scale`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weightloom.engine import TensorSpec, Transpose, WeightConverter
from weightloom.engine.codings.mxfp4 import Mxfp4
from weightloom.engine.ops.coded import DequantizeCodes
from weightloom.engine.planning.composing.unpacking import Packed
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.formats.modules import Place, coded, missing, needed, place_of, refuse_orphans
from weightloom.plugins.formats.packing import MXFP4, PLAIN, Sources, floats, kept
from weightloom.plugins.quantization import PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

_BLOCKS, _POWERS = "_blocks", "_scales"
_BYTES = ("U8", "I8")
_ENDS = (".scale", ".weight_scale")


def detect(stored: Stored) -> str | None:
    """See blocks with scales, or bytes beside a power for each 16 of them."""
    stacks = sum(name.endswith(_BLOCKS) for name in coded(stored.specs, _BYTES))
    singles = sum(_power(name, stored.specs) is not None for name in _weights(stored.specs))
    if stacks + singles == 0 and stored.method is not None:
        singles = sum(1 for _ in _weights(stored.specs))
    return f"{stacks} stacks of blocks and {singles} weights of bytes with powers" if stacks + singles else None


def unpack(stored: Stored, dense: bool) -> Unpacking:
    """Pair codes with their powers; raises as `QuantizationFormat.unpack` says."""
    plain = Listed.of(stored.section, "modules_to_not_convert")
    modules = (*_stacks(stored.specs, plain, dense), *_singles(stored.specs, plain, dense))
    refuse_orphans(stored.specs, modules, _ENDS)
    return Unpacking(modules)


def _stacks(specs: Mapping[str, TensorSpec], plain: Listed, dense: bool) -> Iterator[PackedModule]:
    for blocks in coded(specs, _BYTES):
        if blocks.endswith(_BLOCKS):
            stem = blocks.removesuffix(_BLOCKS)
            plain.refuse(stem)
            names = needed(blocks, (blocks, stem + _POWERS), specs)
            sources, coding = Sources(Place(stem, "_"), names), Mxfp4(blocks=True)
            yield _turned(sources, coding) if dense else kept(sources, coding, MXFP4, PLAIN)


def _turned(sources: Sources, coding: Mxfp4) -> PackedModule:
    rule = WeightConverter(sources.patterns, r"\.weight", [DequantizeCodes(coding), Transpose(-2, -1)])
    return PackedModule(Packed(rule, sources.names, (sources.place.stem,)), None)


def _singles(specs: Mapping[str, TensorSpec], plain: Listed, dense: bool) -> Iterator[PackedModule]:
    for weight in _weights(specs):
        power = _power(weight, specs)
        if power is None:
            raise missing(weight, specs[weight], weight.removesuffix(".weight") + _ENDS[0])
        plain.refuse(weight)
        sources, coding = Sources(place_of(weight), (weight, power)), Mxfp4()
        yield floats(sources, coding) if dense else kept(sources, coding, MXFP4, PLAIN)


def _weights(specs: Mapping[str, TensorSpec]) -> Iterator[str]:
    return (name for name in coded(specs, _BYTES) if name.endswith(".weight"))


def _power(weight: str, specs: Mapping[str, TensorSpec]) -> str | None:
    """Give the tensor of bytes beside a weight that can hold its powers."""
    stem = weight.removesuffix(".weight")
    found = next((stem + end for end in _ENDS if stem + end in specs), None)
    return found if found is not None and specs[found].dtype in ("U8", "F8_E8M0") else None


MXFP4_FORMAT = QuantizationFormat("mxfp4", ("mxfp4",), detect, unpack)


class Plugin:
    """Offers MXFP4."""

    @hookimpl
    def weightloom_formats(self) -> tuple[QuantizationFormat, ...]:
        """Offer MXFP4."""
        return (MXFP4_FORMAT,)


PLUGIN = Plugin()
