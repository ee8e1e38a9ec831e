"""Changes of low rank of a layer that each rank has some inputs of: what the ranks make of A is summed before B."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.lora import LowRank
from weightloom.plugins.layers.parallel import QuantizedRowLinear, RowLinear, ScaledRowLinear
from weightloom.plugins.layers.terms import Dial, Made

MakeLowRank = Callable[[mx.array, mx.array, float, Dial], LowRank]
"""A, B, scale and dial -> the term."""


@dataclass(frozen=True, slots=True, eq=False)
class SummedLowRank(LowRank):
    """`a` is (rank, this rank's columns); what is added is the same on all ranks."""

    group: mx.distributed.Group

    def times(self, x: mx.array, made: Made) -> mx.array:
        """Tokens (..., this rank's columns) -> what is added to the layer's (..., rows)."""
        inner = mx.distributed.all_sum(x @ self.a.T, group=self.group)
        return self.now * (inner @ self.b.T)


def low_rank(layer: nn.Module | None) -> MakeLowRank:
    """Give what makes the terms of a layer: of one with some of the inputs, such as sum over the ranks."""
    if isinstance(layer, RowLinear | QuantizedRowLinear | ScaledRowLinear):
        return partial(SummedLowRank, group=layer._group)
    return LowRank
