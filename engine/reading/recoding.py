"""How far parameters that were coded anew are from what the files hold; reads these tensors once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.carrier import carried
from weightloom.engine.codings.loss import Losing, Loss
from weightloom.engine.planning.groups import Group
from weightloom.engine.reading.gather import gather
from weightloom.engine.reading.origin import CheckpointOrigin
from weightloom.engine.reading.virtual_file import load_arrays
from weightloom.engine.views.program import Program

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.checkpoints.checkpoint import Checkpoint
    from weightloom.engine.plan import Plan


@dataclass(frozen=True, slots=True)
class Recoding:
    """What is coded anew for some parameters, by name, and what rounding takes."""

    parameters: tuple[str, ...]
    loss: Loss


def recodings(plan: Plan) -> Iterator[Recoding]:
    """Measure every group of a plan that codes anew; raises as a load does."""
    assert plan.checkpoint is not None
    for group in plan.groups:
        if any(isinstance(step, Losing) for step in group.program.moves):
            yield Recoding(group.targets, _loss(group, plan.checkpoint))


def recodes(plan: Plan) -> int:
    """Count the parameters that are coded anew; reads nothing."""
    groups = (group for group in plan.groups if any(isinstance(step, Losing) for step in group.program.moves))
    return sum(len(group.targets) for group in groups)


def _loss(group: Group, checkpoint: Checkpoint) -> Loss:
    first, *later = group.program.segments()
    start = first if isinstance(first, Program) else Program(group.program.in_specs)
    arrays = _read(start, group, checkpoint)
    found = Loss()
    for step in later if isinstance(first, Program) else (first, *later):
        # What follows only puts the codes together.
        if isinstance(step, Program):
            break
        stop = step.at + step.arity
        taken = tuple(arrays[step.at : stop])
        arrays[step.at : stop] = made = step.apply(taken)
        found += step.loss(taken, made) if isinstance(step, Losing) else Loss()
    return found


def _read(start: Program, group: Group, checkpoint: Checkpoint) -> list[mx.array]:
    views = start.views()
    read = CheckpointOrigin(checkpoint).reader(group, range(len(group.program.in_specs)))
    return list(load_arrays([carried(view.spec) for view in views], lambda at, out: gather(views[at], read, out)))
