"""GPTQ: `X.qweight`, `X.qzeros`, `X.scales`, `X.g_idx`; AWQ: the same without the last, and in another order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.engine.codings.awq import BITS, Awq
from weightloom.engine.codings.coding import has_twin
from weightloom.engine.codings.gptq import Gptq
from weightloom.engine.errors import ConfigError
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.formats.modules import Place, needed, refuse_orphans
from weightloom.plugins.formats.packing import Sources, affine, floats
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

_CODES = ".qweight"
_PARTS = (".qweight", ".qzeros", ".scales")
_INDEX = ".g_idx"
# What stores zero points less one; the second version stores them as they are.
_FIRST = "gptq"
_SECOND = "gptq_v2"


def detect(stored: Stored) -> str | None:
    """See words with zeros and scales."""
    count = sum(name.endswith(_CODES) for name in stored.specs)
    return f"{count} weights of words" if count and stored.method else None


def unpack_gptq(stored: Stored, dense: bool) -> Unpacking:
    """Take each module's tensors together; raises as `QuantizationFormat.unpack` says."""
    section = stored.section
    form = section.get("checkpoint_format", _FIRST)
    if form not in (_FIRST, _SECOND):
        raise _unknown("checkpoint_format", form, f"{_FIRST} or {_SECOND}")
    bits, group = _whole(section, "bits"), _whole(section, "group_size")
    ordered = not section.get("desc_act", False)
    coding = Gptq(bits, group, form != _SECOND, ordered)
    modules = tuple(_modules(stored, (*_PARTS, _INDEX), coding, bits, dense or not ordered))
    return Unpacking(modules)


def unpack_awq(stored: Stored, dense: bool) -> Unpacking:
    """Take each module's tensors together; raises as `QuantizationFormat.unpack` says."""
    section = stored.section
    version = str(section.get("version", "gemm")).lower()
    if version != "gemm":
        raise _unknown("version", version, "gemm")
    bits = _whole(section, "bits")
    if bits != BITS:
        raise _unknown("bits", bits, str(BITS))
    coding = Awq(_whole(section, "group_size"))
    return Unpacking(tuple(_modules(stored, _PARTS, coding, BITS, dense)))


def _modules(
    stored: Stored, ends: tuple[str, ...], coding: Gptq | Awq, bits: int, dense: bool
) -> Iterator[PackedModule]:
    specs, plain = stored.specs, Listed.of(stored.section, "modules_to_not_convert")
    modules: list[PackedModule] = []
    for codes in (name for name in specs if name.endswith(_CODES)):
        stem = codes.removesuffix(_CODES)
        plain.refuse(stem)
        sources = Sources(Place(stem, "."), needed(codes, (stem + end for end in ends), specs))
        modules.append(_module(sources, specs, coding, bits, dense))
    refuse_orphans(specs, modules, (".qzeros", ".scales", _INDEX))
    yield from modules


def _module(
    sources: Sources, specs: Mapping[str, TensorSpec], coding: Gptq | Awq, bits: int, dense: bool
) -> PackedModule:
    found = tuple(specs[name] for name in sources.names)
    if dense or not has_twin(coding, found):
        return floats(sources, coding)
    return affine(sources, coding, bits, coding.native(coding.shape(found)[-1]))


def _whole(section: Mapping[str, Any], name: str) -> int:
    found = section.get(name)
    if type(found) is not int or found == 0:
        raise _unknown(name, found, "a whole number")
    return found


def _unknown(name: str, found: object, expected: str) -> ConfigError:
    return ConfigError(
        f"{name} is {found!r}",
        expected=expected,
        hint="dequantize it with the tool that wrote it",
        field=f"{SECTION}.{name}",
    )


GPTQ = QuantizationFormat("gptq", ("gptq",), detect, unpack_gptq)
AWQ = QuantizationFormat("awq", ("awq",), detect, unpack_awq)


class Plugin:
    """Offers GPTQ and AWQ."""

    @hookimpl
    def weightloom_formats(self) -> tuple[QuantizationFormat, ...]:
        """Offer both."""
        return (GPTQ, AWQ)


PLUGIN = Plugin()
