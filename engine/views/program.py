"""Program: a chain of moves and value steps from source tensors to target tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.engine.views.algebra import Algebra, ViewAlgebra
from weightloom.engine.views.keeping import Restore
from weightloom.engine.views.moves import Move, Specs
from weightloom.engine.views.view import View
from weightloom.engine.views.windows import windows

if TYPE_CHECKING:
    import mlx.core as mx

T = TypeVar("T")


@runtime_checkable
class ValueStep(Protocol):
    """A step that changes values (cast, dequantize, ...): a frozen dataclass with `at` among its fields.

    It takes the `arity` slots from `at` on; what it gives stands in their place. One that takes one slot, and makes
    each element from the one in its place alone, may say so by a class attribute `elementwise = True`: of such
    steps a rank of several computes its own part alone. One that reads tensors of other files says by `beside_bytes`
    what it holds of them.
    """

    @property
    def at(self) -> int:
        """The first slot that it takes."""
        ...

    @property
    def arity(self) -> int:
        """How many slots it takes."""
        ...

    def infer(self, specs: Specs) -> Specs:
        """Give the specs of its results from those of the slots it takes; PlanError if they do not fit."""
        ...

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Compute its results from the arrays it takes."""
        ...

    def inverse(self) -> ValueStep:
        """Give the step back; NotInvertible if there is no exact one."""
        ...


Step = Move | ValueStep


def is_elementwise(step: ValueStep) -> bool:
    """Say whether a step makes each element from the one in its place alone."""
    return bool(getattr(step, "elementwise", False)) and step.arity == 1


def beside_bytes(step: Step) -> int:
    """Give the bytes that a step holds beside what it takes and gives; most hold none, and do not say."""
    return int(getattr(step, "beside_bytes", 0))


@dataclass(frozen=True)
class Program:
    """What to do with tensors of `in_specs`, in order; hashable, and shared by all groups that do the same.

    `in_specs` are logical (no place on disk). Inference and views are computed once an object.
    """

    in_specs: Specs
    moves: tuple[Step, ...] = ()

    @cached_property
    def out_specs(self) -> Specs:
        """The dtypes and shapes of the results; PlanError if a step does not fit."""
        specs = self.in_specs
        for step in self.moves:
            specs = infer_step(step, specs)
        return specs

    @cached_property
    def is_structural(self) -> bool:
        """Whether it only moves elements."""
        return all(isinstance(step, Move) for step in self.moves)

    @cached_property
    def is_identity(self) -> bool:
        """Whether each result is the source of the same number, element for element."""
        if not self.is_structural or self.in_specs != self.out_specs:
            return False
        return all(_is_source(slot, view) for slot, view in enumerate(self.views()))

    @cached_property
    def restores(self) -> bool:
        """Whether a step of it is answered exactly by the source's own bytes alone."""
        return any(isinstance(step, Restore) for step in self.moves)

    @cached_property
    def rounds(self) -> bool:
        """Whether a step of it, or of its way back, is exact by the source's own bytes alone."""
        steps = [step for step in self.moves if not isinstance(step, Move)]
        return any(isinstance(step, Restore) or isinstance(_found_back(step), Restore) for step in steps)

    @cached_property
    def computes(self) -> bool:
        """Whether it can be run, rounded if need be: no step has the source's own bytes for its only answer."""
        return not any(isinstance(step, Restore) and step.back is None for step in self.moves)

    def inverse(self) -> Program:
        """Give the program from results back to sources; NotInvertible if a value step has no way back."""
        return Program(self.out_specs, tuple(step.inverse() for step in reversed(self.moves)))

    def keeping_inverse(self) -> Program:
        """Give the way back for which a value step without an inverse keeps its inputs."""
        specs, steps = self.in_specs, list[Step]()
        for step in self.moves:
            steps.append(_way_back(step, specs))
            specs = infer_step(step, specs)
        return Program(specs, tuple(reversed(steps)))

    def then(self, other: Program) -> Program:
        """Give the program that runs this one and then `other` on its results."""
        _check_follows(self.out_specs, other.in_specs)
        before, after = list(self.moves), list(other.moves)
        while before and after and _cancel(before[-1], after[0]):
            before.pop()
            after.pop(0)
        return Program(self.in_specs, (*before, *after))

    def beside(self, other: Program) -> Program:
        """Give the program that runs both side by side: this one's slots first, then `other`'s."""
        left = (widened(step, 0, len(other.in_specs)) for step in self.moves)
        right = (widened(step, len(self.out_specs), 0) for step in other.moves)
        return Program((*self.in_specs, *other.in_specs), (*left, *right))

    def apply(self, slots: tuple[T, ...], algebra: Algebra[T]) -> tuple[T, ...]:
        """Run a structural program on views or arrays; PlanError if it has a value step."""
        for step in self.moves:
            if not isinstance(step, Move):
                raise PlanError(f"{type(step).__name__} changes values", expected="steps that only move elements")
            slots = step.apply(slots, algebra)
        return slots

    def views(self) -> tuple[View, ...]:
        """Give what each result is made of, over the source slots; PlanError if it has a value step."""
        return self._views

    @cached_property
    def _views(self) -> tuple[View, ...]:
        _ = self.out_specs  # checks every step before one is run
        sources = tuple(View.identity(slot, spec) for slot, spec in enumerate(self.in_specs))
        return self.apply(sources, ViewAlgebra())

    def segments(self) -> tuple[Program | ValueStep, ...]:
        """Give the longest structural runs, as programs over all slots there, and the value steps between."""
        return tuple(self._segments())

    def _segments(self) -> Iterator[Program | ValueStep]:
        specs = self.in_specs
        for structural, steps in groupby(self.moves, key=lambda step: isinstance(step, Move)):
            if structural:
                program = Program(specs, tuple(steps))
                yield program
                specs = program.out_specs
            else:
                for step in cast("Iterable[ValueStep]", steps):
                    yield step
                    specs = infer_step(step, specs)


def widened(step: Step, before: int, after: int) -> Step:
    """Give the same step among more slots: `before` on the left, `after` on the right."""
    if isinstance(step, Move):
        return step.widen(before, after)
    return cast("ValueStep", replace(cast("Any", step), at=step.at + before))


def _way_back(step: Step, specs: Specs) -> Step:
    try:
        return step.inverse()
    except NotInvertible:
        taken = specs[step.at : step.at + step.arity]  # type: ignore[union-attr]
        return Restore(step.at, step, taken, step.infer(taken))  # type: ignore[union-attr, arg-type]


def infer_step(step: Step, specs: Specs) -> Specs:
    """Give the specs of all slots behind a step; PlanError if it does not fit."""
    if isinstance(step, Move):
        return step.infer(specs)
    stop = step.at + step.arity
    if not 0 <= step.at <= stop <= len(specs):
        name = type(step).__name__
        raise PlanError(f"{name} takes tensors up to {stop - 1}", expected=f"some of {len(specs)} tensors")
    return (*specs[: step.at], *step.infer(specs[step.at : stop]), *specs[stop:])


def _found_back(step: Step) -> Step | None:
    try:
        return step.inverse()
    except NotInvertible:
        return None


def _cancel(step: Step, following: Step) -> bool:
    return _found_back(step) == following


def _is_source(slot: int, view: View) -> bool:
    """Tell whether a view of as many elements as slot `slot` reads them in their own order."""
    return all(window.slot == slot and window.in_place for window in windows(view))


def _check_follows(given: Specs, wanted: Specs) -> None:
    if given == wanted:
        return
    if len(given) != len(wanted):
        raise PlanError(f"a program gives {len(given)} tensors", expected=f"{len(wanted)} for the next one")
    at = next(at for at, pair in enumerate(zip(given, wanted, strict=True)) if pair[0] != pair[1])
    raise PlanError(f"a program gives tensor {at} as {given[at]}", expected=f"{wanted[at]} for the next one")
