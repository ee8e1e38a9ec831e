"""Donors: other checkpoints whose tensors go into a plan, read when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.plan import Plan
from weightloom.engine.planning.report import LoadReport
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, eq=False)
class Donor:
    """A checkpoint as its plan reads it; its files stay open as long as anything refers to it."""

    path: str
    plan: Plan

    @cached_property
    def specs(self) -> Mapping[str, TensorSpec]:
        """What it has, by name, as its plan makes it."""
        return {name: spec for group in self.plan.groups for name, spec in group.made}


@dataclass(frozen=True, slots=True, eq=False)
class DonorTensor:
    """One tensor of a donor."""

    donor: Donor
    name: str

    @property
    def spec(self) -> TensorSpec:
        """Its dtype and shape."""
        return self.donor.specs[self.name]

    @property
    def beside_bytes(self) -> int:
        """Bytes while it is computed with: as read, in float32, and the product with a number."""
        return self.spec.nbytes + 2 * 4 * prod(self.spec.shape)

    def read(self) -> mx.array:
        """Read it alone; raises CheckpointError where the file changed, StorageError where reading fails."""
        group = self.donor.plan.by_target[self.name]
        alone = replace(self.donor.plan, groups=(group,), params=dict(group.made), copies=(), report=LoadReport())
        return alone.load()[self.name]
