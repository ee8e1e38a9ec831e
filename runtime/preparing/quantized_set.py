"""Which modules of a checkpoint are quantized, and how: the file decides, module by module.

A module is quantized if its `scales` are there. The bits follow from the shapes: each row of a packed weight has
`columns * 32 = bits * groups * group_size` bits (MLX's affine packing). The config gives the group size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine import TensorSpec
from weightloom.engine.errors import ConfigError
from weightloom.plugins.quantized import Quantization

_BITS = (2, 3, 4, 5, 6, 8)


def quantized_modules(params: Mapping[str, TensorSpec], config: Mapping[str, Any]) -> dict[str, Quantization]:
    """Give the quantization of each module path that has scales among the (canonical) names.

    Raises ConfigError, with the arithmetic, for shapes that no number of bits fits, or scales without a weight.
    """
    settings = config.get("quantization") or config.get("quantization_config") or {}
    settings = settings if isinstance(settings, Mapping) else {}
    return {path: _one(path, weight, params, settings) for path, weight in _paths(params)}


def _paths(params: Mapping[str, TensorSpec]) -> Iterator[tuple[str, str]]:
    """Give (path, name of the packed weight): of a module with `weight`, or of a stack with a name of its own."""
    for name in sorted(params):
        if name.endswith(".scales"):
            yield name.removesuffix(".scales"), f"{name.removesuffix('.scales')}.weight"
        elif name.endswith("_scales") and name.removesuffix("_scales") in params:
            yield name.removesuffix("_scales"), name.removesuffix("_scales")


def _one(path: str, packed: str, params: Mapping[str, TensorSpec], settings: Mapping[str, Any]) -> Quantization:
    weight = params.get(packed)
    scales = params[f"{path}.scales" if packed != path else f"{path}_scales"]
    if weight is None or weight.dtype != "U32" or not weight.shape or not scales.shape:
        raise ConfigError(
            f"{path} has scales and the weight {weight or '(none)'}",
            expected="a packed weight of dtype U32",
            field=packed,
        )
    own = settings.get(path)
    own = own if isinstance(own, Mapping) else {}
    group_size = own.get("group_size", settings.get("group_size"))
    if not isinstance(group_size, int) or isinstance(group_size, bool) or group_size <= 0:
        raise ConfigError(
            f"{path} is quantized and the config's group_size is {group_size!r}",
            expected="quantization.group_size, a number",
            field="quantization",
        )
    bits, rest = divmod(weight.shape[-1] * 32, scales.shape[-1] * group_size)
    if rest or bits not in _BITS:
        raise ConfigError(
            f"{path}: {weight.shape[-1]} words of 32 bits for {scales.shape[-1]} groups of {group_size} are "
            f"{weight.shape[-1] * 32 / (scales.shape[-1] * group_size):g} bits an element",
            expected=f"one of {', '.join(map(str, _BITS))}",
            hint="correct quantization.group_size in the config",
            field="quantization",
        )
    stated = own.get("bits", settings.get("bits"))
    if isinstance(stated, int) and stated != bits and "bits" in own:
        raise ConfigError(
            f"{path} has {bits} bits and the config says {stated}", expected="the same in both", field="quantization"
        )
    return Quantization(bits, group_size)
