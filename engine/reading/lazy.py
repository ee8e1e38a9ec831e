"""Parameters that are read when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import RLock
from typing import TYPE_CHECKING

from weightloom.engine.carrier import carried
from weightloom.engine.plan import Plan, need_loadable
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.sharding import Sharding
from weightloom.engine.reading.fetch import fetching
from weightloom.engine.reading.meter import Meter
from weightloom.engine.reading.threads import thread_count
from weightloom.engine.reading.tie_check import check_tie
from weightloom.engine.reading.wanted import Computed, ComputedWhole, Cutter, Wanted, computed, moved
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx

Job = Wanted | Computed | ComputedWhole


class LazyArrays(Mapping[str, "mx.array"]):
    """A plan's parameters, each read, and kept, when it is first asked for; the same bytes as `Plan.load` gives.

    `specs` gives dtypes and shapes as MLX will hold them, without reading. What is computed together is read
    together. The files stay open: one that is replaced or removed meanwhile is read as it was. One that was
    written to in place raises CheckpointError, as does a closed checkpoint; two ends of a tie that differ raise
    PlanError when either is asked for. Safe to use from several threads, one of which reads at a time.
    """

    def __init__(self, plan: Plan, sharding: Sharding | None, threads: int | None, strict: bool) -> None:
        need_loadable(plan)
        plan.check(strict)
        thread_count(threads)
        cutter = Cutter.of(plan, sharding)
        self._plan, self._threads = plan, threads
        self._jobs: dict[str, Job] = {}
        self.specs: dict[str, TensorSpec] = {}
        for wanted in moved(plan, cutter):
            self._add(wanted.name, wanted.view.spec, wanted)
        for each in computed(plan, cutter):
            for name, spec in each.made.items():
                self._add(name, spec, each)
        ends = {r.parameter: r.other for r in plan.report.tied if r.parameter in plan.params}
        self._same = {name: other for name, other in ends.items() if name not in self._jobs}
        self.specs |= {name: self.specs[other] for name, other in self._same.items()}
        self._found: dict[str, mx.array] = {}
        self._lock = RLock()

    def _add(self, name: str, spec: TensorSpec, job: Job) -> None:
        self._jobs[name] = job
        self.specs[name] = carried(spec)

    def __getitem__(self, name: str) -> mx.array:
        name = self._same.get(name, name)
        with self._lock:
            if name not in self._found:
                self._read(name)
            return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __contains__(self, name: object) -> bool:
        return name in self.specs

    @property
    def unread(self) -> frozenset[str]:
        """The names that were not asked for yet."""
        return frozenset(name for name in self.specs if self._same.get(name, name) not in self._found)

    def _read(self, name: str) -> None:
        job, checkpoint = self._jobs[name], self._plan.checkpoint
        assert checkpoint is not None
        for record in self._plan.report.tied:
            if record.copy and name in (record.parameter, record.other):
                check_tie(self._plan, record)
        inputs = (job,) if isinstance(job, Wanted) else job.inputs
        with fetching(checkpoint, self._threads, Meter(None, 0)) as fetch:
            arrays = fetch.arrays(inputs)
        checkpoint.check_contents(source for group in _groups(inputs) for source in group.sources)
        self._found |= arrays if isinstance(job, Wanted) else job.finish(list(arrays.values()))


def _groups(inputs: tuple[Wanted, ...]) -> tuple[Group, ...]:
    return tuple({id(each.group): each.group for each in inputs}.values())
