"""Execute a plan: read the sources and give the parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from weightloom.engine.carrier import carried
from weightloom.engine.checkpoint import Checkpoint
from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.gather import gather
from weightloom.engine.groups import Group
from weightloom.engine.origin import CheckpointOrigin
from weightloom.engine.plan import Plan, Progress, need_loadable
from weightloom.engine.program import Program
from weightloom.engine.sharding import Sharding
from weightloom.engine.tie_check import check_ties
from weightloom.engine.values import finish
from weightloom.engine.view import View
from weightloom.engine.virtual_file import load_arrays

if TYPE_CHECKING:
    import mlx.core as mx

# Below this a second thread costs more than it saves.
_WORTH_SPLITTING = 8 << 20
_BATCH = 256 << 20


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One tensor to make: its name, what it is made of, and the group that has the sources."""

    name: str
    view: View
    group: Group


def load(
    plan: Plan, sharding: Sharding | None, threads: int | None, progress: Progress | None, strict: bool
) -> dict[str, mx.array]:
    """Read all parameters (see `Plan.load`)."""
    need_loadable(plan)
    plan.check(strict)
    checkpoint = plan.checkpoint
    assert checkpoint is not None
    check_ties(plan)
    with _pool(threads) as pool:
        structural = [group for group in plan.groups if group.program.is_structural]
        computed = [group for group in plan.groups if not group.program.is_structural]
        moved = [*(w for group in structural for w in _outputs(group, sharding)), *_cut_apart(plan, sharding)]
        inputs = [_inputs(group, sharding) for group in computed]
        total = sum(wanted.view.nbytes for wanted in chain(moved, *inputs))
        run = _Run(checkpoint, pool, thread_count(threads), _Meter(progress, total))
        found = run.arrays(moved)
        for group, wanted in zip(computed, inputs, strict=True):
            arrays = tuple(run.arrays(wanted).values())
            found.update(zip(group.targets, finish(group.program, arrays), strict=False))
    checkpoint.check_unchanged()
    for record in plan.report.tied:
        if record.parameter in plan.params and record.parameter not in found:
            found[record.parameter] = found[record.other]
    return found


def thread_count(threads: int | None) -> int:
    """Give how many threads read: as asked, else WEIGHTLOOM_THREADS, else up to four."""
    text = os.environ.get("WEIGHTLOOM_THREADS", "")
    if threads is None and text and not text.isdigit():
        raise UsageError(f"WEIGHTLOOM_THREADS is {text!r}", expected="a whole number", field="WEIGHTLOOM_THREADS")
    wanted = threads if threads is not None else int(text or min(4, os.cpu_count() or 1))
    if wanted < 1:
        raise UsageError(f"{wanted} threads", expected="one at least", field="threads")
    return wanted


def _pool(threads: int | None) -> ThreadPoolExecutor | nullcontext[None]:
    count = thread_count(threads)
    return ThreadPoolExecutor(count, "weightloom-read") if count > 1 else nullcontext()


class _Meter:
    """Tells a progress callback how many bytes are done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


@dataclass(frozen=True)
class _Run:
    """What one load reads with."""

    checkpoint: Checkpoint
    pool: ThreadPoolExecutor | None
    threads: int
    meter: _Meter

    def arrays(self, wanted: Sequence[_Wanted]) -> dict[str, mx.array]:
        """Make MLX arrays, each read into its own memory."""
        found: dict[str, mx.array] = {}
        for start, stop in _batches([each.view.nbytes for each in wanted]):
            found |= self._batch(wanted[start:stop])
        return found

    def _batch(self, wanted: Sequence[_Wanted]) -> dict[str, mx.array]:
        def fill(number: int, out: memoryview) -> None:
            self.read(wanted[number], out)
            self.meter.add(len(out))

        made = load_arrays([carried(each.view.spec) for each in wanted], fill)
        return {each.name: array for each, array in zip(wanted, made, strict=True)}

    def read(self, wanted: _Wanted, out: memoryview) -> None:
        """Gather one tensor, in as many row blocks as there are threads when it is large."""
        view, read = wanted.view, CheckpointOrigin(self.checkpoint).reader(wanted.group, ())
        rows = view.shape[0] if view.shape else 1
        count = min(self.threads, rows, len(out) // _WORTH_SPLITTING) if self.pool else 1
        if self.pool is None or count < 2:
            gather(view, read, out)
            return
        cuts = [rows * n // count for n in range(count + 1)]
        row = len(out) // rows
        jobs = [
            self.pool.submit(gather, view.cut(0, start, stop), read, out[start * row : stop * row])
            for start, stop in pairwise(cuts)
        ]
        # All must have ended before the buffer may go.
        wait(jobs)
        while jobs:
            jobs.pop(0).result()


def _batches(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut a list of sizes in bytes into runs, each for one read: between two of them an interrupt is heard."""
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if total and total + size > _BATCH:
            yield start, number
            start, total = number, 0
        total += size
    if sizes:
        yield start, len(sizes)


def _outputs(group: Group, sharding: Sharding | None) -> Iterator[_Wanted]:
    for name, view in zip(group.targets, group.program.views(), strict=False):
        yield _Wanted(name, view if sharding is None else sharding.cut(name, view), group)


def _cut_apart(plan: Plan, sharding: Sharding | None) -> Iterator[_Wanted]:
    """The ends of ties that this rank holds another part of than of the tensor that they share."""
    if sharding is None or sharding.size == 1:
        return
    for record in plan.report.tied:
        if sharding.kind_of(record.parameter) == sharding.kind_of(record.other):
            continue
        group = plan.by_target[record.other]
        if record.parameter in plan.params and group.program.is_structural:
            view = group.program.views()[group.targets.index(record.other)]
            yield _Wanted(record.parameter, sharding.cut(record.parameter, view), group)


def _inputs(group: Group, sharding: Sharding | None) -> list[_Wanted]:
    """What goes into the first value step of a group; PlanError where a rank wants a part of what it makes."""
    cut = [name for name in group.targets if sharding is not None and sharding.kind_of(name) != "replicate"]
    if cut and sharding is not None and sharding.size > 1:
        raise PlanError(
            f"{cut[0]} is computed from {len(group.sources)} tensors and cannot be read in part",
            expected="rules that only move elements, for a parameter that is cut among ranks",
            tensor=cut[0],
        )
    first = group.program.segments()[0]
    start = first if isinstance(first, Program) else Program(group.program.in_specs)
    return [_Wanted(str(slot), view, group) for slot, view in enumerate(start.views())]
