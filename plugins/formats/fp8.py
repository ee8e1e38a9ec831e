"""FP8: codes of 8 bits with a scale for each block, each row, or the whole weight, as MXFP8 or as floats.

A scale for rows or for all is kept, and so are the numbers; with blocks, and codes of E5M2, they are coded anew.

Published as `X.weight` with `X.weight_scale_inv` (DeepSeek-V3 and what follows it) or `X.weight_scale`; a stack NAME
has `NAME_scale_inv` or `NAME_scale`. The scale is a factor under either name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.engine.codings.fp8_blocks import CODES, KINDS, Fp8Blocks
from weightloom.engine.codings.fp8_rows import Fp8Rows
from weightloom.engine.codings.mxfp8_codes import GROUP
from weightloom.engine.errors import ConfigError
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.formats.modules import RULES, coded, missing, place_of, refuse_orphans
from weightloom.plugins.formats.packing import SCALED, SCALED_MXFP8, Sources, floats, kept, recoded
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

Block = tuple[int, int]

_SCALES = ("_scale_inv", "_scale")
_POWERS = "F8_E8M0"


def detect(stored: Stored) -> str | None:
    """See codes of 8 bits that are weights; where the config names no method, beside scales that say so."""
    weights = list(fp8_weights(stored.specs))
    if not weights or (stored.method is None and f"{weights[0]}_scale_inv" not in stored.specs):
        return None
    return f"{len(weights)} weights of {stored.specs[weights[0]].dtype}"


def unpack(stored: Stored, dense: bool) -> Unpacking:
    """Pair each weight with its scales; raises as `QuantizationFormat.unpack` says."""
    block = _block_size(stored.section)
    _check_kind(stored)
    plain = Listed.of(stored.section, "modules_to_not_convert", "ignored_layers")
    modules = tuple(fp8_module(name, stored.specs, block, plain, dense) for name in fp8_weights(stored.specs))
    refuse_orphans(stored.specs, modules, (".weight_scale_inv",))
    return Unpacking(modules, RULES)


def fp8_weights(specs: Mapping[str, TensorSpec]) -> Iterator[str]:
    """Give the weights of FP8 codes; scales may be such codes too."""
    return (name for name in coded(specs, KINDS) if not name.endswith(("_scale", "_scale_inv", "scales")))


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
    sources, powers = Sources(place_of(weight), (weight, scales)), specs[scales].dtype == _POWERS
    shape = specs[weight].shape
    whole = prod(specs[scales].shape) == prod(shape[:-2])
    codes = specs[weight].dtype or CODES
    blocks = Fp8Blocks(block or (None if whole else 1, None), powers, codes)
    if dense or shape[-1] % GROUP:
        return floats(sources, blocks)
    # MXFP8's elements are E4M3.
    if block or codes != CODES:
        return recoded(sources, blocks)
    return kept(sources, Fp8Rows(whole, powers), SCALED_MXFP8, SCALED)


def _check_kind(stored: Stored) -> None:
    """Hold the kind of codes, where the section names one, against the codes; ConfigError where they differ."""
    kind = stored.section.get("fmt")
    if kind is None:
        return
    for name in fp8_weights(stored.specs):
        found = (stored.specs[name].dtype or "").removeprefix("F8_").lower()
        if found != kind:
            raise ConfigError(
                f"fmt is {kind!r}, and the codes of {name} are {found}",
                expected="the kind of codes that the file has",
                hint=f"correct {SECTION}.fmt, or get the file that belongs to it",
                field=f"{SECTION}.fmt",
            )


def _block_size(section: Mapping[str, Any]) -> Block | None:
    """Read what the section says of blocks; ConfigError for sizes that are none."""
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
