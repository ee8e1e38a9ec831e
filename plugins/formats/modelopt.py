"""ModelOpt: NVFP4 as `X.weight` (bytes), `X.weight_scale`, `X.weight_scale_2`; FP8 as `X.weight`, `X.weight_scale`.

What the tensors are says how a module is packed; the config is held against that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.engine.codings.fp8_blocks import CODES
from weightloom.engine.codings.nvfp4 import Nvfp4
from weightloom.engine.errors import ConfigError
from weightloom.plugins.formats.fp8 import fp8_module, fp8_weights
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.formats.modules import RULES, coded, needed, place_of, refuse_orphans
from weightloom.plugins.formats.packing import NVFP4, SCALED, Sources, floats, kept
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

_WHOLE = "_scale_2"
_ALGORITHMS = ("NVFP4", "FP8", "MIXED_PRECISION")


def detect(stored: Stored) -> str | None:
    """See weights with a second scale; where the config says ModelOpt, bytes or codes of 8 bits."""
    fours = [name for name in _bytes(stored.specs) if stored.method or name + _WHOLE in stored.specs]
    eights = list(fp8_weights(stored.specs)) if stored.method or fours else []
    return f"{len(fours)} weights of NVFP4 and {len(eights)} of {CODES}" if fours or eights else None


def unpack(stored: Stored, dense: bool) -> Unpacking:
    """Pair each weight with its scales; raises as `QuantizationFormat.unpack` says."""
    _check_algorithm(stored.section)
    plain = Listed.of(stored.section, "ignore", "exclude_modules")
    modules = tuple(_modules(stored, plain, dense))
    _check_layers(stored.section, modules)
    refuse_orphans(stored.specs, modules, (f".weight{_WHOLE}",))
    return Unpacking(modules, RULES)


def _modules(stored: Stored, plain: Listed, dense: bool) -> Iterator[PackedModule]:
    specs = stored.specs
    for weight in _bytes(specs):
        plain.refuse(weight)
        yield _nvfp4(weight, specs, dense)
    for weight in fp8_weights(specs):
        yield fp8_module(weight, specs, None, plain, dense)


def _bytes(specs: Mapping[str, TensorSpec]) -> Iterator[str]:
    return (name for name in coded(specs, ("U8",)) if name.endswith(".weight"))


def _nvfp4(weight: str, specs: Mapping[str, TensorSpec], dense: bool) -> PackedModule:
    names = needed(weight, (weight, f"{weight}_scale", f"{weight}{_WHOLE}"), specs)
    sources, coding = Sources(place_of(weight), names), Nvfp4(divides=False)
    return floats(sources, coding) if dense else kept(sources, coding, NVFP4, SCALED)


def _check_algorithm(section: Mapping[str, Any]) -> None:
    found = section.get("quant_algo", section.get("quant_type"))
    if found is not None and found not in _ALGORITHMS:
        raise ConfigError(
            f"quant_algo is {found!r}",
            expected=" or ".join(_ALGORITHMS),
            hint="dequantize it with another tool",
            field=f"{SECTION}.quant_algo",
        )


def _check_layers(section: Mapping[str, Any], modules: tuple[PackedModule, ...]) -> None:
    """Hold the list of quantized layers, where there is one, against the file: what it leaves out is not packed."""
    listed = section.get("quantized_layers")
    if listed is None:
        return
    if not isinstance(listed, Mapping):
        raise ConfigError(f"quantized_layers is {listed!r}", expected="a mapping", field=f"{SECTION}.quantized_layers")
    for module in modules:
        stem = module.packed.sources[0].removesuffix(".weight")
        if stem not in listed:
            raise ConfigError(
                f"{stem} is stored as codes, and quantized_layers does not list it",
                expected="all quantized modules in the list; what it leaves out is not quantized",
                field=f"{SECTION}.quantized_layers",
            )


MODELOPT = QuantizationFormat("modelopt", ("modelopt", "modelopt_fp4"), detect, unpack)


class Plugin:
    """Offers ModelOpt's."""

    @hookimpl
    def weightloom_formats(self) -> tuple[QuantizationFormat, ...]:
        """Offer ModelOpt's."""
        return (MODELOPT,)


PLUGIN = Plugin()
