"""Plan: the mapping of one checkpoint to one set of parameters, worked out from headers alone.

A plan is a value: immutable, printable, invertible. It holds the groups (sources, program, targets) with every
name and shape resolved, what is kept beside them for saving back, and the report of what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.report import LoadReport
from weightloom.engine.planning.resolve import Resolver
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.checkpoints.checkpoint import Checkpoint
    from weightloom.engine.planning.describe import Row, Step
    from weightloom.engine.planning.sharding import Sharding
    from weightloom.engine.reading.lazy import LazyArrays

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint tensor outside all groups, saved back from the source's bytes; `reason` says why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The mapping, both ways. Built by `build_plan`, `save_plan`, `inverse` and `then`.

    `sources` are the checkpoint's tensors and `params` the parameters that the groups make (of an inverse plan
    the other way round). `copies` are groups whose target shares another parameter's tensor: they must hold the
    same bytes, and are written from that parameter. `before` is the plan that this one was made from by composing or
    casting: whether two ends of a tie are equal is seen there.
    """

    sources: Mapping[str, TensorSpec]
    params: Mapping[str, TensorSpec]
    groups: Sequence[Group]
    copies: tuple[Group, ...] = ()
    kept: tuple[Kept, ...] = ()
    report: LoadReport = field(default_factory=LoadReport)
    inverted: bool = False
    checkpoint: Checkpoint | None = field(default=None, compare=False, repr=False)
    resolver: Resolver | None = field(default=None, compare=False, repr=False)
    before: Plan | None = field(default=None, compare=False, repr=False)

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def ok(self, strict: bool = True) -> bool:
        """Say whether it would load; `strict=False` tolerates unexpected tensors and lone missing parameters."""
        from weightloom.engine.planning.verdict import problem

        return problem(self, strict) is None

    def check(self, strict: bool = True) -> None:
        """Raise PlanError, with what does not fit grouped by shape of name, unless it would load."""
        from weightloom.engine.planning.verdict import problem

        error = problem(self, strict)
        if error is not None:
            raise error

    @property
    def invertible(self) -> bool:
        """Say whether the checkpoint can be written back exactly."""
        return not self.report.lossy and not self.report.wrong

    def inverse(self) -> Plan:
        """Turn it round: parameters to checkpoint; raises NotInvertible, naming the rule."""
        if self.report.lossy:
            lossy = self.report.lossy[0]
            raise NotInvertible(
                f"{lossy.rule}: {lossy.why}",
                expected="rules whose every op has an exact inverse",
                hint="save in another layout, which does not claim the original bytes",
                rule=lossy.rule,
                tensor=lossy.parameters[0] if lossy.parameters else None,
            )
        if self.report.wrong:
            raise NotInvertible("the plan does not fit", expected="a plan without mismatches; see its report")
        return replace(
            self,
            sources=self.params,
            params=self.sources,
            groups=tuple(group.inverse() for group in self.groups),
            copies=tuple(group.inverse() for group in self.copies),
            inverted=not self.inverted,
        )

    def then(self, other: Plan) -> Plan:
        """Compose: this plan's targets are the other's sources; raises PlanError where they do not meet."""
        from weightloom.engine.planning.composing.compose import compose

        return compose(self, other)

    @cached_property
    def by_target(self) -> Mapping[str, Group]:
        """The group that makes each target."""
        return {target: group for group in (*self.copies, *self.groups) for target in group.targets}

    @cached_property
    def by_source(self) -> Mapping[str, Group]:
        """The group that each source goes into."""
        return {source: group for group in (*self.groups, *self.copies) for source in group.sources}

    @cached_property
    def kept_by_name(self) -> Mapping[str, Kept]:
        """What each tensor that leads nowhere is kept for."""
        return {each.name: each for each in reversed(self.kept)}

    def explain(self, name: str) -> tuple[Step, ...]:
        """Say how a name, of either side, is mapped: each rule that acted, in order; PlanError if unknown."""
        from weightloom.engine.planning.describe import explain

        return explain(self, name)

    def table(self) -> tuple[Row, ...]:
        """Give the mapping by shape of name."""
        from weightloom.engine.planning.describe import table

        return table(self)

    def to_json(self) -> dict[str, Any]:
        """Give plan and report as JSON values, `"schema": 1`."""
        from weightloom.engine.planning.describe import to_json

        return to_json(self)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the parameters; a tensor that two of them share counts once."""
        groups = (*self.groups, *self.copies) if self.inverted else self.groups
        return sum(spec.nbytes for group in groups for _, spec in group.made)

    @property
    def peak_bytes(self) -> int:
        """Bytes that a load holds at most, on one thread: the parameters and the largest scratch."""
        from weightloom.engine.reading.memory import peak_bytes

        return peak_bytes(self)

    def load(
        self,
        sharding: Sharding | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        *,
        strict: bool = True,
    ) -> dict[str, mx.array]:
        """Read the parameters, each into the memory that MLX will use.

        A dtype that MLX lacks arrives as uint8 bytes (`params` keeps its label and logical shape). Raises
        PlanError when the plan does not fit or two ends of a tie differ; CheckpointError when a source changed
        or is cut short; StorageError when a read fails. No parameter is returned then.
        """
        from weightloom.engine.reading.materialize import load

        return load(self, sharding, threads, progress, strict)

    def lazy(self, sharding: Sharding | None = None, threads: int | None = None, *, strict: bool = True) -> LazyArrays:
        """Give the parameters as a mapping that reads each when it is first asked for; raises as `load` then.

        Raises PlanError at once when the plan does not fit.
        """
        from weightloom.engine.reading.lazy import LazyArrays

        return LazyArrays(self, sharding, threads, strict)

    def save(
        self,
        params: Mapping[str, mx.array],
        directory: str | Path,
        *,
        max_shard_bytes: int | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> list[Path]:
        """Write the checkpoint back from parameters, in the source's shards and header order.

        With `max_shard_bytes` (or for a model that was never loaded) new shards are cut. Raises NotInvertible or
        PlanError before anything is written; CheckpointError when a source changed; StorageError, with the old
        files whole, when writing fails; UsageError for a target that is not empty without `overwrite`.
        """
        from weightloom.engine.saving.save import save

        return save(
            self,
            params,
            Path(directory),
            max_shard_bytes=max_shard_bytes,
            overwrite=overwrite,
            progress=progress,
        )


def need_loadable(plan: Plan) -> None:
    """Refuse to read bytes through a plan that was turned round or has no checkpoint behind it."""
    if plan.inverted or plan.checkpoint is None:
        raise PlanError(
            "this plan has no files to read",
            expected="a plan built on a checkpoint, not its inverse",
            hint="call load on the plan that build_plan gave",
        )
