"""What a save would write, as arrays in memory: for a form that no plan writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.plan import Plan
from weightloom.engine.reading.origin import ParameterOrigin
from weightloom.engine.saving.held import as_held
from weightloom.engine.saving.remainders import check_fillers

if TYPE_CHECKING:
    import mlx.core as mx


def given_back(plan: Plan, params: Mapping[str, mx.array]) -> dict[str, mx.array]:
    """Give the tensors of a plan's checkpoint, made from parameters.

    Raises NotInvertible where there is no way back, or values have no place there; PlanError for parameters that are
    lacking, unknown or of another shape.
    """
    back = as_held(plan.inverse(), params)
    check_fillers(ParameterOrigin(params), back.groups)
    return replace(back, inverted=False, checkpoint=Checkpoint.from_arrays(dict(params))).load()
