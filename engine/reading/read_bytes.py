"""How many bytes of its sources a rank reads, from headers alone: the runs that it needs, and short gaps along them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from weightloom.engine.plan import Plan
from weightloom.engine.planning.grouping import grouped_names
from weightloom.engine.planning.sharding import Kind, Sharding
from weightloom.engine.reading.limits import Budget, Limits
from weightloom.engine.reading.schedule import Direct, schedule
from weightloom.engine.reading.sweeps import Sweep, sweeps
from weightloom.engine.reading.wanted import Cutter, Wanted, computed, moved
from weightloom.engine.views.view import View
from weightloom.engine.views.windows import Window, byte_windows, unit_of

# What is read beyond the rank's own bytes is worth a word from here on.
_NOTED = 1.05


@dataclass(frozen=True, slots=True)
class PartRead:
    """A parameter: how it is cut, the bytes of this rank's part, and the bytes that are read for it."""

    name: str
    kind: Kind
    needed: int
    read: int


def bytes_read(view: View) -> int:
    """Give the bytes that gathering a view reads."""
    width = unit_of(view.dtype).nbytes
    budget = Limits().budget(width)
    return width * sum(_units(part, budget) for part in sweeps(byte_windows(view), budget))


def parts_read(plan: Plan, sharding: Sharding) -> Iterator[PartRead]:
    """Give each parameter that a rank loads; raises PlanError as `Sharding.slice_of`.

    What is computed together from whole tensors comes under its first parameter's name.
    """
    cutter = Cutter.of(plan, sharding)
    for wanted in moved(plan, cutter):
        yield _part(wanted.name, (wanted,), wanted.view.nbytes, sharding)
    for each in computed(plan, cutter):
        needed = sum(wanted.view.nbytes for wanted in each.inputs)
        whole = sum(spec.nbytes for spec in each.whole.values())
        share = sum(spec.nbytes for spec in each.made.values())
        yield _part(next(iter(each.made)), each.inputs, needed * share // max(whole, 1), sharding)


def reading_notes(plan: Plan, sharding: Sharding) -> tuple[str, ...]:
    """Say of which parameters a rank reads more than its part, and why."""
    more: dict[Kind, list[PartRead]] = {}
    for part in parts_read(plan, sharding):
        if part.read > _NOTED * part.needed:
            more.setdefault(part.kind, []).append(part)
    return tuple(_note(kind, parts) for kind, parts in more.items())


def _note(kind: Kind, parts: list[PartRead]) -> str:
    names = ", ".join(grouped_names(sorted(part.name for part in parts)))
    read, needed = (sum(getattr(part, what) for part in parts) for what in ("read", "needed"))
    return (
        f"{names}, cut by {kind}: {read} bytes are read for {needed}, for what this rank holds lies in runs with gaps "
        "shorter than 64 KiB, or is computed from the whole"
    )


def _part(name: str, inputs: tuple[Wanted, ...], needed: int, sharding: Sharding) -> PartRead:
    return PartRead(name, sharding.kind_of(name), needed, sum(bytes_read(wanted.view) for wanted in inputs))


def _units(part: Window | Sweep, budget: Budget) -> int:
    if isinstance(part, Sweep):
        return sum(stop - start for start, stop in part.reads(budget))
    plan = schedule(part.loops, budget)
    times = prod(loop.times for loop in plan.outer)
    if isinstance(plan, Direct):
        return times * plan.run
    full, rest = divmod(plan.ranged.times, plan.chunk)
    return times * (full * plan.units(plan.chunk) + (plan.units(rest) if rest else 0))
