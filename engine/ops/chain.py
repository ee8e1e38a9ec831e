"""Bind a converter's ops to the shapes at hand: a chain of ops becomes a program of moves.

A `Chain` lives while one group's program is worked out. Its state is a list of *parts*, one for each pattern
(a source pattern before the first op, a target pattern after the last), each with one tensor or, for a
collected star, a list. An op changes the state through the few verbs below and never touches data.

A program may give more than the parts: *remainders*, results that are no parameter and are kept for the way back.
It may take more than the parts it started from: *fillers*, zeros that no source has. Both come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Cut, Join, Permute, Reorder, Reshape
from weightloom.engine.views.program import Program, Step, ValueStep, infer_step, widened


@dataclass(frozen=True, slots=True)
class Part:
    """The tensors that one pattern stands for; `label` is the pattern's text."""

    label: str
    specs: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A target pattern and, where the parameters are known, what it should become."""

    label: str
    spec: TensorSpec | None = None


@dataclass(frozen=True)
class OpContext:
    """What an op may ask for: the targets of its rule and the config."""

    targets: tuple[Target, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


class Chain:
    """The state of a chain of ops while it is bound; `program()` gives the result."""

    def __init__(self, parts: Sequence[Part], context: OpContext) -> None:
        self.context = context
        self._parts = list(parts)
        self._inputs = tuple(spec for part in parts for spec in part.specs)
        self._remainders: tuple[TensorSpec, ...] = ()
        self._moves: list[Step] = []

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts as they stand."""
        return tuple(self._parts)

    def program(self) -> Program:
        """Give what the ops so far amount to."""
        return Program(self._inputs, tuple(self._moves))

    def only(self, op: str) -> TensorSpec:
        """Give the single tensor that `op` needs; raises PlanError for none or several."""
        if len(self._parts) == 1 and len(self._parts[0].specs) == 1:
            return self._parts[0].specs[0]
        counts = ", ".join(f"{part.label}: {len(part.specs)}" for part in self._parts)
        raise PlanError(f"{op} met {counts} tensors", expected=f"{op} works on one tensor", field="operations")

    def reshape(self, part: int, item: int, shape: tuple[int, ...]) -> None:
        """Give one tensor another shape, its elements in the same order."""
        spec = self._parts[part].specs[item]
        if shape != spec.shape:
            self._apply(Reshape(0, spec.shape, shape), part, item, 1)

    def permute(self, part: int, item: int, axes: tuple[int, ...]) -> None:
        """Permute one tensor's axes."""
        if axes != tuple(range(len(axes))):
            self._apply(Permute(0, axes), part, item, 1)

    def cut(self, part: int, dim: int, sizes: tuple[int, ...]) -> None:
        """Cut a part's one tensor along `dim` into a list."""
        self._apply(Cut(0, dim, sizes), part, 0, 1)

    def join(self, part: int, dim: int) -> None:
        """Concatenate all tensors of a part along `dim` into one."""
        specs = self._parts[part].specs
        if len(specs) != 1:
            sizes = tuple(spec.shape[dim] for spec in specs)
            self._apply(Join(0, dim, sizes), part, 0, len(specs))

    def value(self, step: ValueStep, part: int, item: int, arity: int = 1) -> None:
        """Add a step that changes values, on `arity` tensors from `item` on."""
        self._apply(widened(step, -self._slot(part, item), 0), part, item, arity)

    def keep(self, part: int, item: int) -> None:
        """Take a tensor out of a part as a remainder: no parameter, and kept for the way back."""
        slot, count = self._slot(part, item), len(self._flat())
        self._reorder((*range(slot), *range(slot + 1, count), slot))
        specs = self._parts[part].specs
        self._remainders += (specs[item],)
        self._parts[part] = Part(self._parts[part].label, specs[:item] + specs[item + 1 :])

    def fill(self, part: int, spec: TensorSpec) -> None:
        """Put zeros that no source has behind the tensors of a part."""
        slot, count = self._slot(part, len(self._parts[part].specs)), len(self._flat())
        self._moves = [widened(step, 0, 1) for step in self._moves]
        self._inputs += (spec,)
        self._reorder((*range(slot), count, *range(slot, count)))
        self._parts[part] = Part(self._parts[part].label, (*self._parts[part].specs, spec))

    def regroup(self, layout: Sequence[tuple[str, Sequence[int]]]) -> None:
        """Make new parts of the tensors, given by their flat numbers; each tensor goes into one of them."""
        flat = self._flat()
        order = tuple(slot for _, slots in layout for slot in slots)
        self._reorder((*order, *range(len(order), len(flat))))
        self._parts = [Part(label, tuple(flat[slot] for slot in slots)) for label, slots in layout]

    def slot(self, part: int, item: int) -> int:
        """Give the flat number of a tensor."""
        return self._slot(part, item)

    def gather_parts(self, label: str) -> None:
        """Make one part of all, its tensors in order."""
        self._parts = [Part(label, tuple(spec for part in self._parts for spec in part.specs))]

    def spread_part(self, labels: Iterable[str]) -> None:
        """Make a part of each tensor of the only part."""
        specs = self._parts[0].specs
        self._parts = [Part(label, (spec,)) for label, spec in zip(labels, specs, strict=True)]

    def relabel(self, labels: Sequence[str]) -> None:
        """Name the parts after other patterns."""
        self._parts = [Part(label, part.specs) for label, part in zip(labels, self._parts, strict=True)]

    def _slot(self, part: int, item: int) -> int:
        return sum(len(p.specs) for p in self._parts[:part]) + item

    def _flat(self) -> tuple[TensorSpec, ...]:
        return (*(spec for part in self._parts for spec in part.specs), *self._remainders)

    def _reorder(self, order: tuple[int, ...]) -> None:
        if order != tuple(range(len(order))):
            self._moves.append(Reorder(order))

    def _apply(self, step: Step, part: int, item: int, arity: int) -> None:
        """Take a step whose slots count from `item` on: a part may have hundreds, and most are left as they are."""
        specs = self._parts[part].specs
        outputs = infer_step(step, specs[item : item + arity])
        slot = self._slot(part, item)
        self._moves.append(widened(step, slot, self._count() - slot - arity))
        self._parts[part] = Part(self._parts[part].label, specs[:item] + outputs + specs[item + arity :])

    def _count(self) -> int:
        return sum(len(part.specs) for part in self._parts) + len(self._remainders)
