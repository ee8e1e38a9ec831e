"""A checkpoint whose modules are packed, seen as if they were not: rules are written for plain weights.

What stands beside a weight goes where it goes: of a vendor's modules whatever the rules are, for formats unpack before
any rule acts; of MLX's by rules that speak of its parts too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine import Checkpoint, TensorSpec
from weightloom.runtime.preparing.quantized_settings import settings_in

_WEIGHT = "weight"
_PLAIN = "BF16"
_GROUP = 64
_PARTS = ("scales", "biases")


@dataclass(frozen=True)
class PlainView:
    """The headers to plan with, and how many tensors are left out of them; `mlx` says that MLX packed the modules."""

    checkpoint: Checkpoint
    set_aside: int = 0
    mlx: bool = False


def plain_view(checkpoint: Checkpoint, config: Mapping[str, Any]) -> PlainView:
    """Leave out what stands beside a packed weight, and give such a weight the shape that it has unpacked."""
    specs = checkpoint.logical
    beside = {name: weight for name in specs if (weight := _weight_of(name)) in specs}
    if not beside:
        return PlainView(checkpoint)
    packed = {weight: TensorSpec(_PLAIN, specs[weight].shape) for weight in beside.values()}
    words = {name: spec for name, spec in packed.items() if f"{_module(name)}.{_PARTS[0]}" in beside}
    packed |= {name: _unpacked(name, specs, settings_in(config)) for name in words}
    plain = {name: packed.get(name, spec) for name, spec in specs.items() if name not in beside}
    return PlainView(Checkpoint.from_specs(plain, checkpoint.metadata), len(beside), bool(words))


def _weight_of(name: str) -> str:
    """Give the name of the weight that a name stands beside, "" for none."""
    path, dot, last = name.rpartition(".")
    return f"{path}{dot}{_WEIGHT}" if last.startswith(f"{_WEIGHT}_") or last in _PARTS else ""


def _unpacked(name: str, specs: Mapping[str, TensorSpec], settings: Mapping[str, Any]) -> TensorSpec:
    """Count the columns of a matrix that MLX packed: as many groups as there are scales."""
    module = _module(name)
    own = settings.get(module)
    group = (own if isinstance(own, Mapping) else settings).get("group_size", _GROUP)
    scales = specs[f"{module}.{_PARTS[0]}"].shape
    return TensorSpec(_PLAIN, (*scales[:-1], scales[-1] * int(group)) if scales else scales)


def _module(name: str) -> str:
    return name.rpartition(".")[0]
