"""Execute a plan: read the sources and give the parameters."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from weightloom.engine.plan import Plan, Progress, need_loadable
from weightloom.engine.planning.sharding import Sharding
from weightloom.engine.reading.fetch import fetching
from weightloom.engine.reading.meter import Meter
from weightloom.engine.reading.tie_check import check_ties
from weightloom.engine.reading.wanted import Cutter, computed, moved

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
    cutter = Cutter.of(plan, sharding)
    gathered, later = list(moved(plan, cutter)), list(computed(plan, cutter))
    total = sum(wanted.view.nbytes for wanted in chain(gathered, *(each.inputs for each in later)))
    with fetching(checkpoint, threads, Meter(progress, total)) as fetch:
        found = fetch.arrays(gathered)
        for each in later:
            found |= each.finish(list(fetch.arrays(each.inputs).values()))
    checkpoint.check_unchanged()
    for record in plan.report.tied:
        if record.parameter in plan.params and record.parameter not in found:
            found[record.parameter] = found[record.other]
    return found
