"""What a load makes: tensors that are gathered, each with what it is made of, and what is computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.sharding import Sharding
from weightloom.engine.spec import TensorSpec
from weightloom.engine.steps.divisible import Divisible
from weightloom.engine.steps.values import finish, run_steps
from weightloom.engine.views.program import Program, ValueStep, is_elementwise
from weightloom.engine.views.rank_slice import Slice
from weightloom.engine.views.view import View

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tensor to make: its name, what it is made of, and the group that has the sources."""

    name: str
    view: View
    group: Group


@dataclass(frozen=True, slots=True)
class Computed:
    """A target that value steps make, by itself: from a rank's part of what goes into them.

    The first step takes all inputs, each later one what the one before gives.
    """

    name: str
    inputs: tuple[Wanted, ...]
    steps: tuple[ValueStep, ...]

    @property
    def made(self) -> Mapping[str, TensorSpec]:
        """The target's name and spec."""
        specs = tuple(wanted.view.spec for wanted in self.inputs)
        for step in self.steps:
            specs = step.infer(specs)
        return {self.name: specs[0]}

    @property
    def whole(self) -> Mapping[str, TensorSpec]:
        """The same: nothing else is computed."""
        return self.made

    def finish(self, arrays: list[mx.array]) -> dict[str, mx.array]:
        """Compute the target; `arrays` are used up."""
        taken = tuple(arrays)
        arrays.clear()
        return {self.name: run_steps(self.steps, taken, self.name)}


@dataclass(frozen=True, slots=True)
class ComputedWhole:
    """Targets that a group's program makes together, from whole tensors; a rank's part is cut from the result.

    `parts` gives, by name, which result it is and which rows of it (None: all).
    """

    group: Group
    inputs: tuple[Wanted, ...]
    parts: Mapping[str, tuple[int, Slice | None]]

    @property
    def whole(self) -> Mapping[str, TensorSpec]:
        """The targets' names and the specs that are computed."""
        return {name: self.group.program.out_specs[at] for name, (at, _) in self.parts.items()}

    @property
    def made(self) -> Mapping[str, TensorSpec]:
        """The targets' names and specs, those of the parts where they are cut."""
        specs = self.group.program.out_specs
        return {
            name: specs[at] if rows is None else rows.of_view(View.identity(0, specs[at])).spec
            for name, (at, rows) in self.parts.items()
        }

    def finish(self, arrays: list[mx.array]) -> dict[str, mx.array]:
        """Compute the targets; `arrays` are used up."""
        import mlx.core as mx

        made = finish(self.group.program, arrays, self.group.sources)
        found = {name: made[at] if rows is None else rows.of_array(made[at]) for name, (at, rows) in self.parts.items()}
        # The whole may go before the next group comes.
        mx.eval(found)
        return found


@dataclass(frozen=True, slots=True)
class Cutter:
    """What a sharding makes of a plan's parameters, `specs`; without one, all of each."""

    sharding: Sharding | None = None
    specs: Mapping[str, TensorSpec] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, sharding: Sharding | None) -> Cutter:
        """Take the specs from what the groups make; a lone rank holds everything."""
        if sharding is None or sharding.size == 1:
            return cls()
        specs = {name: spec for group in plan.groups for name, spec in group.made}
        ends = {record.parameter: specs[record.other] for record in plan.report.tied if record.other in specs}
        return cls(sharding, {**ends, **specs})

    def rows(self, name: str) -> Slice | None:
        """Say which rows of a parameter are wanted; None for all. Raises PlanError as `Sharding.slice_of`."""
        return None if self.sharding is None else self.sharding.slice_of(name, self.specs)

    def cut(self, name: str, view: View) -> View:
        """Give the part of a parameter's view that is wanted."""
        rows = self.rows(name)
        return view if rows is None else rows.of_view(view)

    def apart(self, plan: Plan) -> Iterator[tuple[str, Group, int]]:
        """Give the ends of ties of which this rank holds other rows than of the tensor that they share.

        With each comes the group that makes the tensor, and which of its results it is.
        """
        for record in plan.report.tied if self.sharding is not None else ():
            if record.parameter in plan.params and self.rows(record.parameter) != self.rows(record.other):
                group = plan.by_target[record.other]
                yield record.parameter, group, group.targets.index(record.other)


def moved(plan: Plan, cutter: Cutter) -> Iterator[Wanted]:
    """Give the targets of the groups that only move elements, or a rank's parts of them."""
    for group in plan.groups:
        if group.program.is_structural:
            for name, view in zip(group.targets, group.program.views(), strict=False):
                yield Wanted(name, cutter.cut(name, view), group)
    for name, group, number in cutter.apart(plan):
        if group.program.is_structural:
            yield Wanted(name, cutter.cut(name, group.program.views()[number]), group)


def computed(plan: Plan, cutter: Cutter) -> Iterator[Computed | ComputedWhole]:
    """Give the targets of all other groups, or a rank's parts of them.

    A part is read as a part where its steps can make it from parts, else cut from the whole.
    """
    for group in plan.groups:
        if not group.program.is_structural:
            yield from _computed(group, dict(zip(group.targets, range(len(group.targets)), strict=True)), cutter)
    for name, group, number in cutter.apart(plan):
        if not group.program.is_structural:
            yield from _computed(group, {name: number}, cutter)


def _computed(group: Group, names: Mapping[str, int], cutter: Cutter) -> Iterator[Computed | ComputedWhole]:
    segments = group.program.segments()
    start = segments[0] if isinstance(segments[0], Program) else Program(group.program.in_specs)
    behind = segments[1:] if isinstance(segments[0], Program) else segments
    steps = tuple(step for step in behind if not isinstance(step, Program))
    made = None if len(steps) < len(behind) else _alone(group, names, start, steps, cutter)
    if made is None:
        inputs = tuple(Wanted(str(slot), view, group) for slot, view in enumerate(start.views()))
        yield ComputedWhole(group, inputs, {name: (number, cutter.rows(name)) for name, number in names.items()})
    else:
        yield from made


def _alone(
    group: Group, names: Mapping[str, int], start: Program, steps: tuple[ValueStep, ...], cutter: Cutter
) -> list[Computed] | None:
    """Give each target by itself; None where the steps do not let it."""
    if all(is_elementwise(step) for step in steps):
        views = start.views()
        return [
            Computed(
                name,
                (Wanted(name, cutter.cut(name, views[number]), group),),
                tuple(step for step in steps if step.at == number),
            )
            for name, number in names.items()
        ]
    first, *later = steps
    rows = cutter.rows(next(iter(names)))
    if len(names) > 1 or rows is None or not isinstance(first, Divisible) or not all(map(is_elementwise, later)):
        return None
    part = first.part(rows)
    if part is None or first.arity != len(start.out_specs):
        return None
    step, taken = part
    parts = (each if cut is None else cut.of_view(each) for each, cut in zip(start.views(), taken, strict=True))
    inputs = tuple(Wanted(str(slot), view, group) for slot, view in enumerate(parts))
    return [Computed(name, inputs, (step, *later)) for name in names]
