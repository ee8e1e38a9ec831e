"""A plan whose parameters are floats where its sources are FP8 codes with a scale for each block.

Source: block-wise FP8 as it is published: NAME holds codes, NAME_scale_inv the scale of each block, to be multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.spec import TensorSpec
from weightloom.engine.steps.fp8_step import CODES, FromFp8Blocks
from weightloom.engine.views.program import Program

_SCALES = "_scale_inv"


def with_floats(plan: Plan, block: tuple[int, int]) -> Plan:
    """Give the plan with codes turned into BF16 before anything else is done; parameters of scales are no more.

    `block`: rows and columns of a block. Going back, the source's own bytes are taken. Raises PlanError for codes
    without scales, or scales that belong to nothing or are of another number.
    """
    found = _Floats(plan, block).plan()
    check_floats(found)
    return found


def check_floats(plan: Plan) -> None:
    """Raise PlanError where a parameter is FP8 codes."""
    for name, spec in sorted(plan.params.items()):
        if (spec.dtype or "").startswith("F8"):
            raise PlanError(
                f"{name} is made of codes, {spec}, without scales for blocks",
                expected=f"floats, or {CODES} with NAME{_SCALES} beside it and the size of a block in the config",
                hint="convert floats of these weights",
                tensor=name,
            )


@dataclass(frozen=True)
class _Floats:
    before: Plan
    block: tuple[int, int]

    @cached_property
    def scales(self) -> Mapping[str, TensorSpec]:
        """The scales of codes, by the name of the codes."""
        specs = {name: spec for group in self.before.groups for name, spec in group.taken}
        return {
            name: specs[name + _SCALES]
            for name, spec in specs.items()
            if spec.dtype == CODES and name + _SCALES in specs
        }

    def plan(self) -> Plan:
        groups = tuple(self._group(group) for group in self.before.groups if not self._is_scales(group))
        made = {name: spec for group in groups for name, spec in group.made}
        params = {name: made[name] for name in self.before.params if name in made}
        report = replace(self.before.report, lossy=tuple(lossy_records(groups)))
        before = self.before.before or self.before
        return replace(self.before, groups=groups, params=params, report=report, before=before)

    def _is_scales(self, group: Group) -> bool:
        known = {name + _SCALES for name in self.scales}
        found = [name in known for name in group.sources]
        if any(found) and not all(found):
            raise PlanError(
                f"{group.sources[found.index(True)]} goes into one parameter with what is no scale",
                expected="scales apart from all else",
                tensor=group.targets[0],
            )
        return bool(found) and all(found)

    def _group(self, group: Group) -> Group:
        if not any(name in self.scales for name in group.sources):
            return group
        taken = list(self._taken(group))
        fillers = group.program.in_specs[len(group.sources) :]
        steps = [
            FromFp8Blocks(slot, self.block, (spec, self.scales[name]))
            for slot, (name, spec) in enumerate(group.taken)
            if name in self.scales
        ]
        moves = (*steps, *group.program.moves)
        program = Program((*(spec for _, spec in taken), *fillers), moves)
        return replace(group, sources=tuple(name for name, _ in taken), program=program)

    def _taken(self, group: Group) -> Iterator[tuple[str, TensorSpec]]:
        for name, spec in group.taken:
            yield name, spec
            if name in self.scales:
                yield name + _SCALES, self.scales[name]
