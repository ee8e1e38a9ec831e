"""compressed-tensors: `X.weight_packed` or `X.weight` with `X.weight_scale` and what else its `format` has.

Source: the formats' names and tensors as the library of vLLM's project documents them. Zero points of packed integers
are packed along the rows; codes are stored from 0 on, half of their range above what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.engine.codings.coding import has_twin
from weightloom.engine.codings.fp8_blocks import CODES, KINDS
from weightloom.engine.codings.mxfp4 import Mxfp4
from weightloom.engine.codings.nvfp4 import Nvfp4
from weightloom.engine.codings.packed_integers import PackedIntegers, SignedBytes
from weightloom.engine.errors import ConfigError
from weightloom.plugins.formats.fp8 import fp8_module, fp8_weights
from weightloom.plugins.formats.groups import Scheme, Schemes
from weightloom.plugins.formats.modules import RULES, Place, coded, needed, refuse_orphans
from weightloom.plugins.formats.packing import MXFP4, NVFP4, PLAIN, SCALED, Sources, affine, floats, kept
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

FORMATS = (
    "float-quantized",
    "naive-quantized",
    "int-quantized",
    "pack-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mixed-precision",
    "dense",
)
_PACKED = ".weight_packed"
_WEIGHT = ".weight"


def detect(stored: Stored) -> str | None:
    """See packed weights, or codes with scales; where the config names no method, the former alone."""
    packed = sum(name.endswith(_PACKED) for name in stored.specs)
    plain = sum(1 for _ in _codes(stored.specs)) if stored.method else 0
    return f"{packed} packed weights and {plain} of codes" if packed + plain else None


def unpack(stored: Stored, dense: bool) -> Unpacking:
    """Take each module's tensors together; raises as `QuantizationFormat.unpack` says."""
    _check_format(stored.section)
    schemes = Schemes.of(stored.section)
    modules = (*_from_packed(stored.specs, schemes, dense), *_from_codes(stored.specs, schemes, dense))
    refuse_orphans(
        stored.specs, modules, (".weight_scale", ".weight_global_scale", ".weight_zero_point", ".weight_g_idx")
    )
    return Unpacking(modules, RULES)


def _check_format(section: Mapping[str, Any]) -> None:
    groups = section.get("config_groups")
    inner = groups.values() if isinstance(groups, Mapping) else ()
    for each in (section, *(group for group in inner if isinstance(group, Mapping))):
        found = each.get("format")
        if found is not None and found not in FORMATS:
            raise ConfigError(
                f"format is {found!r}",
                expected=", ".join(FORMATS),
                hint="dequantize it with the tool that wrote it",
                field=f"{SECTION}.format",
            )


def _from_packed(specs: Mapping[str, TensorSpec], schemes: Schemes, dense: bool) -> Iterator[PackedModule]:
    for packed in (name for name in specs if name.endswith(_PACKED)):
        stem = packed.removesuffix(_PACKED)
        schemes.plain.refuse(stem)
        if specs[packed].dtype != "U8":
            yield _integers(stem, specs, schemes.scheme_of(stem), dense)
        elif f"{stem}.weight_global_scale" in specs or specs.get(f"{stem}.weight_scale", _NONE).dtype == CODES:
            yield _nvfp4(stem, specs, dense)
        else:
            yield _mxfp4(stem, specs, dense)


_NONE = TensorSpec()


def _nvfp4(stem: str, specs: Mapping[str, TensorSpec], dense: bool) -> PackedModule:
    sources, coding = _sources(stem, specs, "packed", "scale", "global_scale"), Nvfp4(divides=True)
    return floats(sources, coding) if dense else kept(sources, coding, NVFP4, SCALED)


def _mxfp4(stem: str, specs: Mapping[str, TensorSpec], dense: bool) -> PackedModule:
    sources, coding = _sources(stem, specs, "packed", "scale"), Mxfp4()
    return floats(sources, coding) if dense else kept(sources, coding, MXFP4, PLAIN)


def _integers(stem: str, specs: Mapping[str, TensorSpec], scheme: Scheme, dense: bool) -> PackedModule:
    zeros, index = (end in scheme.companions or f"{stem}.weight_{end}" in specs for end in ("zero_point", "g_idx"))
    more = (*(("zero_point",) if zeros else ()), *(("g_idx",) if index else ()))
    sources = _sources(stem, specs, "packed", "scale", "shape", *more)
    coding = PackedIntegers(scheme.bits, zeros, index)
    return _as_mlx_has_it(sources, coding, specs, scheme.bits, dense or scheme.reordered)


def _as_mlx_has_it(
    sources: Sources, coding: PackedIntegers | SignedBytes, specs: Mapping[str, TensorSpec], bits: int, dense: bool
) -> PackedModule:
    found = tuple(specs[name] for name in sources.names)
    if dense or not has_twin(coding, found):
        return floats(sources, coding)
    return affine(sources, coding, bits, coding.group(found))


def _sources(stem: str, specs: Mapping[str, TensorSpec], *ends: str) -> Sources:
    names = (f"{stem}{_WEIGHT}_{end}" for end in ends)
    return Sources(Place(stem, "."), needed(f"{stem}{_WEIGHT}_{ends[0]}", names, specs))


def _from_codes(specs: Mapping[str, TensorSpec], schemes: Schemes, dense: bool) -> Iterator[PackedModule]:
    for weight in _codes(specs):
        stem = weight.removesuffix(_WEIGHT)
        scheme = schemes.scheme_of(stem)
        if specs[weight].dtype in KINDS:
            yield fp8_module(weight, specs, scheme.block, schemes.plain, dense)
            continue
        schemes.plain.refuse(weight)
        # Zero points of bytes are not read: those that are there belong to nothing, and are refused as such.
        needed(weight, (f"{weight}_{end}" for end in scheme.companions), specs)
        sources = Sources(Place(stem, "."), needed(weight, (weight, f"{weight}_scale"), specs))
        yield _as_mlx_has_it(sources, SignedBytes(), specs, scheme.bits, dense)


def _codes(specs: Mapping[str, TensorSpec]) -> Iterator[str]:
    """Give weights of codes that are not packed."""
    yield from fp8_weights(specs)
    yield from (name for name in coded(specs, ("I8",)) if name.endswith(_WEIGHT))


COMPRESSED = QuantizationFormat("compressed-tensors", ("compressed-tensors",), detect, unpack)


class Plugin:
    """Offers compressed-tensors'."""

    @hookimpl
    def weightloom_formats(self) -> tuple[QuantizationFormat, ...]:
        """Offer compressed-tensors'."""
        return (COMPRESSED,)


PLUGIN = Plugin()
