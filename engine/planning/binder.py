"""Binder: a converter's groups, bound to their tensors. What many groups have alike is worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine.errors import PlanError
from weightloom.engine.ops.chain import Part
from weightloom.engine.planning.fit import Fit
from weightloom.engine.planning.groups import Bundle, Group, bind, needed
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program

Wanted = tuple[TensorSpec | None, ...]


@dataclass(frozen=True)
class Binder:
    """Binds bundles of one checkpoint; lives while one plan is built.

    `specs` are those of the tensors, without a place on disk, one object for all tensors of one dtype and shape.
    """

    specs: Mapping[str, TensorSpec]
    fit: Fit
    config: Mapping[str, Any]
    _bound: dict[Any, tuple[Program, tuple[Part, ...]]] = field(default_factory=dict)
    _needed: dict[Any, tuple[int, ...] | None] = field(default_factory=dict)

    def needed(self, found: Bundle, wanted: Wanted) -> tuple[int, ...] | None:
        """Give how many tensors of each source pattern the targets are made of, if their specs tell."""
        key = (found.claim.converter, wanted)
        if key not in self._needed:
            self._needed[key] = needed(found.rule, wanted, self.config)
        return self._needed[key]

    def group(self, found: Bundle, wanted: Wanted) -> Group:
        """Bind a bundle that is complete; raises PlanError where the ops do not fit the tensors or the targets."""
        program, parts = self._bind(found, wanted)
        return Group(
            found.rule, found.all_names, self._target_names(found, [len(part.specs) for part in parts]), program
        )

    def _bind(self, found: Bundle, wanted: Wanted) -> tuple[Program, tuple[Part, ...]]:
        # A bundle may have a thousand tensors: their specs are told apart by identity, not by value.
        key = (found.claim.converter, tuple((index, *self._kinds(names)) for index, names in found.slots), wanted)
        if key not in self._bound:
            self._bound[key] = bind(found.parts(self.specs), found.rule, wanted, self.config)
        return self._bound[key]

    def _kinds(self, names: Sequence[str]) -> tuple[int, ...]:
        """Tell the specs of tensors: how many there are of one, or each."""
        kinds = tuple(map(id, map(self.specs.__getitem__, names)))
        return (len(kinds), kinds[0]) if len(set(kinds)) == 1 else (0, *kinds)

    def _target_names(self, found: Bundle, counts: list[int]) -> tuple[str, ...]:
        rule = found.rule
        if len(counts) != len(rule.templates):
            raise PlanError(
                f"the ops make {len(counts)} tensors",
                expected=f"one for each of {len(rule.templates)} targets",
            )
        names: list[str] = []
        for index, count in enumerate(counts):
            if not rule.numbers(index) and count != 1:
                raise PlanError(
                    f"the ops make {count} tensors for {rule.target_patterns[index]}",
                    expected="one, or a star in the target to number them",
                )
            numbers = range(count) if rule.numbers(index) else [None]
            names += [self.fit.required(found.target_name(index, number)) for number in numbers]
        return tuple(names)
