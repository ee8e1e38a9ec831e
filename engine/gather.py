"""Gather: read a view's bytes from its sources into their place, with bounded scratch.

What is contiguous on both sides is read straight into the target. Other pieces are read along their source
into scratch (gaps shorter than 64 KiB are read and thrown away) and placed from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from weightloom.engine.errors import PlanError
from weightloom.engine.runs import offsets, runs
from weightloom.engine.schedule import Direct, Staged, schedule
from weightloom.engine.view import View
from weightloom.engine.windows import Loop, Window, byte_windows, unit_of

__all__ = ["SCRATCH_BYTES", "Reader", "check_bytes", "gather", "runs", "scratch_needed"]

SCRATCH_BYTES = 8 << 20

Reader = Callable[[int, int, memoryview], None]
"""`read(slot, offset, buffer)` fills `buffer` with the bytes from `offset` on of the slot's tensor data."""


def check_bytes(view: View) -> None:
    """Raise PlanError if a piece of a sub-byte tensor begins or ends inside a byte, or the dtype is open."""
    for _ in byte_windows(view):
        pass


def scratch_needed(view: View, scratch_bytes: int = SCRATCH_BYTES) -> int:
    """Give the scratch bytes that `gather` takes for a view with the same limit: exact, 0 if none."""
    width = unit_of(view.dtype).nbytes
    plans = (schedule(window.loops, width, scratch_bytes) for window in byte_windows(view))
    return max((plan.units(plan.chunk) * width for plan in plans if isinstance(plan, Staged)), default=0)


def gather(view: View, read: Reader, out: memoryview, *, scratch_bytes: int = SCRATCH_BYTES) -> None:
    """Fill `out`, as many bytes as the view has, with its elements in row-major order.

    Scratch takes `scratch_needed(view, scratch_bytes)` bytes: at most `scratch_bytes`, but never less than
    one element. `read` is never asked for nothing; what it raises passes through. PlanError, before anything
    is read, if `out` has another size or a sub-byte piece begins inside a byte.
    """
    found = tuple(byte_windows(view))
    if out.nbytes != view.nbytes or out.readonly:
        raise PlanError(
            f"a buffer of {out.nbytes} bytes", expected=f"{view.nbytes} writable bytes for {view.spec}"
        )
    if not found:
        return
    scratch = memoryview(bytearray(scratch_needed(view, scratch_bytes)))
    job = _Job(read, out.cast("B"), scratch, unit_of(view.dtype).nbytes)
    for window in found:
        plan = schedule(window.loops, job.width, scratch_bytes)
        if isinstance(plan, Direct):
            _read_direct(job, window, plan)
        else:
            _read_staged(job, window, plan)


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of gather: where bytes come from and go to; `width` is the bytes of one unit."""

    read: Reader
    out: memoryview
    scratch: memoryview
    width: int


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
            _place(job, window.target + target + first * ranged.target, plan, steps)


def _fill_scratch(job: _Job, slot: int, start: int, plan: Staged, steps: int) -> None:
    packed = _block(plan, steps)[: plan.packed]
    length = (plan.span if packed else plan.units(steps)) * job.width
    for number, (_, source) in enumerate(offsets(packed)):
        place = number * length
        job.read(slot, (start + source) * job.width, job.scratch[place : place + length])


def _place(job: _Job, start: int, plan: Staged, steps: int) -> None:
    """Copy a block's elements from scratch to the target."""
    import numpy as np  # here, so that scratch is planned without NumPy

    loops, width = _block(plan, steps), job.width
    shape = tuple(loop.times for loop in loops)
    there = tuple(loop.target * width for loop in loops)
    here = tuple(stride * width for stride in _scratch_strides(loops, plan))
    element = np.dtype(f"u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")
    target: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    target = np.ndarray(shape, element, job.out, start * width, there)
    target[...] = np.ndarray(shape, element, job.scratch, 0, here)


def _block(plan: Staged, steps: int) -> tuple[Loop, ...]:
    return (plan.ranged._replace(times=steps), *plan.inner)


def _scratch_strides(loops: tuple[Loop, ...], plan: Staged) -> tuple[int, ...]:
    counts = [loop.times for loop in loops[: plan.packed]]
    pitches = (plan.span * prod(counts[at + 1 :]) for at in range(plan.packed))
    return (*pitches, *(loop.source for loop in loops[plan.packed :]))
