"""Bind a converter's ops to the shapes at hand: a chain of ops becomes a program of moves.

A `Chain` lives while one group's program is worked out. Its state is a list of *parts*, one for each pattern
(a source pattern before the first op, a target pattern after the last), each with one tensor or, for a
collected star, a list. An op changes the state through the few verbs below and never touches data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine.errors import PlanError
from weightloom.engine.moves import Cut, Join, Move, Permute, Reshape
from weightloom.engine.program import Program, ValueStep
from weightloom.engine.spec import TensorSpec


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
        self._moves: list[Move | ValueStep] = []

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
            self._apply(Reshape(self._slot(part, item), spec.shape, shape), part, item, 1)

    def permute(self, part: int, item: int, axes: tuple[int, ...]) -> None:
        """Permute one tensor's axes."""
        if axes != tuple(range(len(axes))):
            self._apply(Permute(self._slot(part, item), axes), part, item, 1)

    def cut(self, part: int, dim: int, sizes: tuple[int, ...]) -> None:
        """Cut a part's one tensor along `dim` into a list."""
        self._apply(Cut(self._slot(part, 0), dim, sizes), part, 0, 1)

    def join(self, part: int, dim: int) -> None:
        """Concatenate all tensors of a part along `dim` into one."""
        specs = self._parts[part].specs
        if len(specs) != 1:
            sizes = tuple(spec.shape[dim] for spec in specs)
            self._apply(Join(self._slot(part, 0), dim, sizes), part, 0, len(specs))

    def value(self, step: ValueStep, part: int, item: int, arity: int = 1) -> None:
        """Add a step that changes values, on `arity` tensors from `item` on."""
        self._apply(step, part, item, arity)

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

    def _apply(self, move: Move | ValueStep, part: int, item: int, arity: int) -> None:
        flat = tuple(spec for p in self._parts for spec in p.specs)
        outputs = move.infer(flat)
        self._moves.append(move)
        specs = self._parts[part].specs
        grown = len(outputs) - len(flat) + arity
        start = self._slot(part, item)
        changed = specs[:item] + tuple(outputs[start : start + grown]) + specs[item + arity :]
        self._parts[part] = Part(self._parts[part].label, changed)
