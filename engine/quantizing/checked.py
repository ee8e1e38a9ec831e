"""Scales are looked at as they are read: one that is no number would spoil every row it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from weightloom.engine.codings.checks import check_e4m3, check_numbers, check_powers
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.quantizing.quantization import AFFINE, Quantization, part_names
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import Program

if TYPE_CHECKING:
    import mlx.core as mx

_E4M3_MODE = "nvfp4"


@dataclass(frozen=True, slots=True)
class CheckedScales:
    """Slot `at`, scales or biases of matrices packed in a mode, as they are; PlanError for one that is no number."""

    elementwise: ClassVar[bool] = True

    at: int
    mode: str
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the same spec."""
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Look at them."""
        check_scales(arrays[0], self.mode)
        return arrays

    def inverse(self) -> CheckedScales:
        """The same."""
        return self


def check_scales(scales: mx.array, mode: str) -> None:
    """Raise PlanError for scales of a mode of MLX of which one is no number."""
    check = check_numbers if mode == AFFINE else check_e4m3 if mode == _E4M3_MODE else check_powers
    check(scales)


def checked(plan: Plan, packed: Mapping[str, Quantization]) -> Plan:
    """Give the plan with the scales and biases of packed matrices looked at; these by the name of the words."""
    modes = {part: how.mode for name, how in packed.items() for part in part_names(name)[1:]}
    return replace(plan, groups=tuple(_checked(group, modes) for group in plan.groups), before=plan.before or plan)


def _checked(group: Group, modes: Mapping[str, str]) -> Group:
    steps = [CheckedScales(slot, modes[name]) for slot, name in enumerate(group.targets) if name in modes]
    if not steps:
        return group
    return replace(group, program=Program(group.program.in_specs, (*group.program.moves, *steps)))
