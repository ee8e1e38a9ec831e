"""A checkpoint whose modules a vendor packed, seen as if they were not: rules are written for plain weights.

The scales beside a weight go where it goes, whatever the rules are: formats unpack before any rule acts.
"""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine import Checkpoint, TensorSpec

_WEIGHT = "weight"
_PLAIN = "BF16"


@dataclass(frozen=True)
class PlainView:
    """The headers to plan with, and how many scales are left out of them."""

    checkpoint: Checkpoint
    set_aside: int = 0


def plain_view(checkpoint: Checkpoint) -> PlainView:
    """Leave out what stands beside a weight as `weight_...`, and take such a weight for a plain one."""
    specs = checkpoint.logical
    beside = {name: weight for name in specs if (weight := _weight_of(name)) in specs}
    if not beside:
        return PlainView(checkpoint)
    packed = set(beside.values())
    plain = {name: _plain(spec) if name in packed else spec for name, spec in specs.items() if name not in beside}
    return PlainView(Checkpoint.from_specs(plain, checkpoint.metadata), len(beside))


def _weight_of(name: str) -> str:
    """Give the name of the weight that a name is written after, "" for none."""
    path, dot, last = name.rpartition(".")
    return f"{path}{dot}{_WEIGHT}" if last.startswith(f"{_WEIGHT}_") else ""


def _plain(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(_PLAIN, spec.shape)
