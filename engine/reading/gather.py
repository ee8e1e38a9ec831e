"""Gather: read a view's bytes from its sources into their place, with bounded scratch.

What is contiguous on both sides is read straight into the target. Other pieces are read along their source
into scratch (gaps shorter than 64 KiB are read and thrown away) and placed from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from weightloom.engine.errors import PlanError
from weightloom.engine.reading.limits import Budget, Limits
from weightloom.engine.reading.placing import place
from weightloom.engine.reading.runs import offsets, runs
from weightloom.engine.reading.schedule import Direct, Staged, schedule
from weightloom.engine.reading.scratch import scratch
from weightloom.engine.reading.sweeps import Sweep, clipped, sweeps
from weightloom.engine.views.view import View
from weightloom.engine.views.windows import Loop, Window, byte_windows, unit_of

__all__ = [
    "SCRATCH_BYTES",
    "Reader",
    "check_bytes",
    "gather",
    "gather_within",
    "runs",
    "scratch_needed",
    "scratch_within",
]

SCRATCH_BYTES = Limits().scratch

Reader = Callable[[int, int, memoryview], None]
"""`read(slot, offset, buffer)` fills `buffer` with the bytes from `offset` on of the slot's tensor data."""


def check_bytes(view: View) -> None:
    """Raise PlanError if a piece of a sub-byte tensor begins or ends inside a byte, or the dtype is open."""
    for _ in byte_windows(view):
        pass


def scratch_needed(view: View, scratch_bytes: int = SCRATCH_BYTES) -> int:
    """Give the scratch bytes that `gather` takes for a view with the same limit; 0 if none."""
    return scratch_within(view, Limits(scratch_bytes))


def scratch_within(view: View, limits: Limits) -> int:
    """Give the scratch bytes that `gather_within` takes for a view; 0 if none."""
    width = unit_of(view.dtype).nbytes
    budget = limits.budget(width)
    return width * max((_units(part, budget) for part in sweeps(byte_windows(view), budget)), default=0)


def gather(view: View, read: Reader, out: memoryview, *, scratch_bytes: int = SCRATCH_BYTES) -> None:
    """Fill `out`, as many bytes as the view has, with its elements in row-major order.

    Scratch takes `scratch_needed(view, scratch_bytes)` bytes: at most `scratch_bytes`, but never less than
    one element. `read` is never asked for nothing; what it raises passes through. PlanError, before anything
    is read, if `out` has another size or a sub-byte piece begins inside a byte.
    """
    gather_within(view, read, out, Limits(scratch_bytes))


def gather_within(view: View, read: Reader, out: memoryview, limits: Limits) -> None:
    """Do what `gather` does, within other limits."""
    width = unit_of(view.dtype).nbytes
    budget = limits.budget(width)
    parts = tuple(sweeps(byte_windows(view), budget))
    if out.nbytes != view.nbytes or out.readonly:
        raise PlanError(f"a buffer of {out.nbytes} bytes", expected=f"{view.nbytes} that can be written")
    if not parts:
        return
    held = scratch(width * max(_units(part, budget) for part in parts))
    job = _Job(read, out.cast("B"), held, width, budget)
    for part in parts:
        _read_part(job, part)


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of gather: where bytes come from and go to; `width` is the bytes of one unit."""

    read: Reader
    out: memoryview
    scratch: memoryview
    width: int
    budget: Budget


def _units(part: Window | Sweep, budget: Budget) -> int:
    """Give the scratch, in units, that reading a part takes."""
    if isinstance(part, Sweep):
        return part.scratch(budget)
    plan = schedule(part.loops, budget)
    return plan.units(plan.chunk) if isinstance(plan, Staged) else 0


def _read_part(job: _Job, part: Window | Sweep) -> None:
    if isinstance(part, Sweep):
        _read_sweep(job, part)
        return
    plan = schedule(part.loops, job.budget)
    if isinstance(plan, Direct):
        _read_direct(job, part, plan)
    else:
        _read_staged(job, part, plan)


def _read_sweep(job: _Job, sweep: Sweep) -> None:
    slot = sweep.windows[0].slot
    for start, stop in sweep.reads(job.budget):
        job.read(slot, start * job.width, job.scratch[: (stop - start) * job.width])
        for window in sweep.windows:
            for part in clipped(window, start, stop):
                _place(job, part)


def _read_direct(job: _Job, window: Window, plan: Direct) -> None:
    length = plan.run * job.width
    for target, source in offsets(plan.outer):
        start = (window.target + target) * job.width
        job.read(window.slot, (window.source + source) * job.width, job.out[start : start + length])


def _read_staged(job: _Job, window: Window, plan: Staged) -> None:
    ranged = plan.ranged
    for target, source in offsets(plan.outer):
        for first in range(0, ranged.times, plan.chunk):
            steps = min(plan.chunk, ranged.times - first)
            start = window.source + source + first * ranged.source
            _fill_scratch(job, window.slot, start, plan, steps)
            loops = _scratch_loops(plan, steps)
            _place(job, Window(window.slot, window.target + target + first * ranged.target, 0, loops))


def _fill_scratch(job: _Job, slot: int, start: int, plan: Staged, steps: int) -> None:
    packed = _block(plan, steps)[: plan.packed]
    length = (plan.span if packed else plan.units(steps)) * job.width
    for number, (_, source) in enumerate(offsets(packed)):
        place = number * length
        job.read(slot, (start + source) * job.width, job.scratch[place : place + length])


def _scratch_loops(plan: Staged, steps: int) -> tuple[Loop, ...]:
    """Give a block's loops over scratch, where packed reads lie one behind the other."""
    loops = _block(plan, steps)
    times = [loop.times for loop in loops[: plan.packed]]
    pitches = [plan.span * prod(times[at + 1 :]) for at in range(plan.packed)]
    packed = (loop._replace(source=pitch) for loop, pitch in zip(loops, pitches, strict=False))
    return (*packed, *loops[plan.packed :])


def _block(plan: Staged, steps: int) -> tuple[Loop, ...]:
    return (plan.ranged._replace(times=steps), *plan.inner)


def _place(job: _Job, window: Window) -> None:
    """Copy the elements of a window over scratch to the target."""
    import numpy as np  # here, so that scratch is planned without NumPy

    width = job.width
    shape = tuple(loop.times for loop in window.loops)
    there = tuple(loop.target * width for loop in window.loops)
    here = tuple(loop.source * width for loop in window.loops)
    element = np.dtype(f"u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")
    target: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    target = np.ndarray(shape, element, job.out, window.target * width, there)
    place(target, np.ndarray(shape, element, job.scratch, window.source * width, here))
