"""FP8: codes of 8 bits with a scale for each block, each row, or the whole weight, to MXFP8 or to floats.

Published as `X.weight` with `X.weight_scale_inv` (DeepSeek-V3 and what follows it) or `X.weight_scale`; a stack NAME
has `NAME_scale_inv` or `NAME_scale`. The scale is a factor under either name. Static scales of activations are left
out: what is multiplied stays in floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from weightloom.engine import RuleSet, TensorSpec, WeightConverter
from weightloom.engine.codings.fp8_blocks import CODES, Fp8Blocks
from weightloom.engine.codings.mxfp8_codes import GROUP
from weightloom.engine.errors import ConfigError
from weightloom.engine.mapping.claims import Drop
from weightloom.engine.ops.coded import DequantizeCodes, RecodeMxfp8
from weightloom.engine.planning.unpacking import Packed
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.formats.modules import coded, missing, place_of
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

Block = tuple[int | None, int | None]

MXFP8 = Quantization(8, GROUP, "mxfp8")
ACTIVATIONS = Drop(
    [r"\.(?:input_scale|activation_scale|input_activation_scale|[kv]_scale)"],
    why="Scales of activations and of caches: what is multiplied here stays in floats.",
)
_SCALES = ("_scale_inv", "_scale")


def detect(stored: Stored) -> str | None:
    """See codes of 8 bits that are weights; where the config names no method, beside scales that say so."""
    weights = list(_weights(stored.specs))
    if not weights or (stored.method is None and f"{weights[0]}_scale_inv" not in stored.specs):
        return None
    return f"{len(weights)} weights of {CODES}"


def unpack(stored: Stored, dense: bool) -> Unpacking:
    """Pair each weight with its scales; raises as `QuantizationFormat.unpack` says."""
    block = _block_size(stored.section)
    plain = Listed.of(stored.section, "modules_to_not_convert", "ignored_layers")
    modules = tuple(fp8_module(name, stored.specs, block, plain, dense) for name in _weights(stored.specs))
    return Unpacking(modules, RuleSet((ACTIVATIONS,)))


def fp8_module(
    weight: str, specs: Mapping[str, TensorSpec], block: Block | None, plain: Listed, dense: bool
) -> PackedModule:
    """Give one module, packed as MXFP8 unless `dense`, or its rows do not divide into groups.

    `block` None: a scale for each row or for all, by its shape. Raises PlanError where there is no scale, ConfigError
    for one that the config calls not quantized.
    """
    scales = next((weight + end for end in _SCALES if weight + end in specs), None)
    if scales is None:
        raise missing(weight, specs[weight], f"{weight}{_SCALES[0]}")
    plain.refuse(weight)
    shape = specs[weight].shape
    coding = Fp8Blocks(_block_of(specs[scales], shape, block), specs[scales].dtype == "F8_E8M0")
    packs = not dense and shape[-1] % GROUP == 0
    sources = (r"\.weight", rf"\.weight{scales.removeprefix(weight)}")
    place = place_of(weight)
    if not packs:
        rule = WeightConverter(sources, r"\.weight", [DequantizeCodes(coding)])
        return PackedModule(Packed(rule, (weight, scales), (place.part("weight"),)), None)
    rule = WeightConverter(sources, (r"\.weight", r"\.scales"), [RecodeMxfp8(coding)])
    return PackedModule(Packed(rule, (weight, scales), place.parts(("weight", "scales"))), MXFP8)


def _weights(specs: Mapping[str, TensorSpec]) -> Iterator[str]:
    return (name for name in coded(specs, (CODES,)) if not name.endswith(("_scale", "_scale_inv", "scales")))


def _block_of(scales: TensorSpec, shape: tuple[int, ...], block: Block | None) -> Block:
    if block is not None:
        return block
    if prod(scales.shape) == prod(shape[:-2]):
        return None, None
    return 1, None


def _block_size(section: Mapping[str, Any]) -> Block | None:
    """Read what the section says of blocks; ConfigError for another kind of codes, or sizes that are none."""
    kind = section.get("fmt", "e4m3")
    if kind != "e4m3":
        raise ConfigError(
            f"fmt is {kind!r}", expected="e4m3", hint="dequantize it with another tool", field=f"{SECTION}.fmt"
        )
    found = section.get("weight_block_size")
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(type(size) is int and size > 0 for size in found):
        raise ConfigError(
            f"weight_block_size is {found!r}",
            expected="rows and columns of a block",
            field=f"{SECTION}.weight_block_size",
        )
    return found[0], found[1]


FP8 = QuantizationFormat("fp8", ("fp8", "fbgemm_fp8"), detect, unpack)


class Plugin:
    """Offers FP8."""

    @hookimpl
    def weightloom_formats(self) -> tuple[QuantizationFormat, ...]:
        """Offer FP8."""
        return (FP8,)


PLUGIN = Plugin()
