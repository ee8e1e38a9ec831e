"""Execute a plan: read the sources and give the parameters."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from weightloom.engine.fetch import fetching
from weightloom.engine.meter import Meter
from weightloom.engine.plan import Plan, Progress, need_loadable
from weightloom.engine.sharding import Sharding
from weightloom.engine.tie_check import check_ties
from weightloom.engine.values import finish
from weightloom.engine.wanted import cut_apart, inputs, outputs

if TYPE_CHECKING:
    import mlx.core as mx


def load(
    plan: Plan, sharding: Sharding | None, threads: int | None, progress: Progress | None, strict: bool
) -> dict[str, mx.array]:
    """Read all parameters (see `Plan.load`)."""
    need_loadable(plan)
    plan.check(strict)
    checkpoint = plan.checkpoint
    assert checkpoint is not None
    check_ties(plan)
    structural = [group for group in plan.groups if group.program.is_structural]
    computed = [group for group in plan.groups if not group.program.is_structural]
    moved = [*(w for group in structural for w in outputs(group, sharding)), *cut_apart(plan, sharding)]
    taken = [inputs(group, sharding) for group in computed]
    total = sum(wanted.view.nbytes for wanted in chain(moved, *taken))
    with fetching(checkpoint, threads, Meter(progress, total)) as fetch:
        found = fetch.arrays(moved)
        for group, wanted in zip(computed, taken, strict=True):
            arrays = tuple(fetch.arrays(wanted).values())
            found.update(zip(group.targets, finish(group.program, arrays), strict=False))
    checkpoint.check_unchanged()
    for record in plan.report.tied:
        if record.parameter in plan.params and record.parameter not in found:
            found[record.parameter] = found[record.other]
    return found
