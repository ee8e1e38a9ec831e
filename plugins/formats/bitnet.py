"""BitNet: ternary weights as `X.weight`, four a byte, and `X.weight_scale`.

The scale divides under `linear_class: bitlinear`, which is what a config without one means, and multiplies under
`autobitlinear`. What is multiplied stays in floats here, where the published layers round it to 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from weightloom.engine.codings.coding import has_twin
from weightloom.engine.codings.ternary import BITS, Ternary
from weightloom.engine.errors import ConfigError
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.formats.modules import coded, needed, place_of, refuse_orphans
from weightloom.plugins.formats.packing import Sources, affine, floats
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.plugins.specs import hookimpl

K = TypeVar("K")
V = TypeVar("V")

_SCALE = "_scale"
_DIVIDES = {"bitlinear": True, "autobitlinear": False}
# What a section may say beside, and what the form that is read here has of it.
_ONLY = {"quantization_mode": "offline", "use_rms_norm": False}


def detect(stored: Stored) -> str | None:
    """See weights of bytes; where the config names no method nothing says which way their scale goes."""
    count = sum(1 for _ in _weights(stored)) if stored.method else 0
    return f"{count} weights of bytes" if count else None


def unpack(stored: Stored, dense: bool) -> Unpacking:
    """Pair each weight with its scale; raises as `QuantizationFormat.unpack` says."""
    coding = Ternary(_one_of(stored.section, "linear_class", _DIVIDES, "bitlinear"))
    for field, only in _ONLY.items():
        _one_of(stored.section, field, {only: only}, only)
    modules = tuple(_modules(stored, coding, dense))
    refuse_orphans(stored.specs, modules, (f".weight{_SCALE}",))
    return Unpacking(modules)


def _modules(stored: Stored, coding: Ternary, dense: bool) -> Iterator[PackedModule]:
    plain = Listed.of(stored.section, "modules_to_not_convert")
    for weight in _weights(stored):
        plain.refuse(weight)
        sources = Sources(place_of(weight), needed(weight, (weight, weight + _SCALE), stored.specs))
        found = tuple(stored.specs[name] for name in sources.names)
        if dense or not has_twin(coding, found):
            yield floats(sources, coding)
        else:
            yield affine(sources, coding, BITS, coding.group(found))


def _weights(stored: Stored) -> Iterator[str]:
    return (name for name in coded(stored.specs, ("U8",)) if name.endswith(".weight"))


def _one_of(section: Mapping[str, Any], field: str, known: Mapping[K, V], otherwise: K) -> V:
    found = section.get(field, otherwise)
    if found not in tuple(known):
        raise ConfigError(
            f"{field} is {found!r}",
            expected=" or ".join(map(str, known)),
            hint="dequantize it with the tool that wrote it",
            field=f"{SECTION}.{field}",
        )
    return known[found]


BITNET = QuantizationFormat("bitnet", ("bitnet",), detect, unpack)


class Plugin:
    """Offers BitNet's."""

    @hookimpl
    def weightloom_formats(self) -> tuple[QuantizationFormat, ...]:
        """Offer BitNet's."""
        return (BITNET,)


PLUGIN = Plugin()
