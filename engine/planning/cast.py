"""Casting float tensors to another float type, as a value step of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import NotInvertible, UsageError
from weightloom.engine.mapping.claims import KeepDtype
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.program import Program

if TYPE_CHECKING:
    import mlx.core as mx

FLOATS = ("F16", "BF16", "F32")
# (from, to) pairs in which each value of the first type is a value of the second.
_WIDENING = {("F16", "F32"), ("BF16", "F32")}


@dataclass(frozen=True, slots=True)
class Cast:
    """Slot `at` from dtype `old` to dtype `new` (F16, BF16, F32), rounded to nearest as MLX does."""

    elementwise: ClassVar[bool] = True

    at: int
    old: str
    new: str
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        """Give the new dtype with the same shape."""
        return (TensorSpec(self.new, specs[0].shape),)

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        """Cast one array."""
        import mlx.core as mx

        return (arrays[0].astype(getattr(mx, DTYPES[self.new].mlx or "")),)

    def inverse(self) -> Cast:
        """Cast back, which is exact after a widening; NotInvertible else."""
        if (self.old, self.new) not in _WIDENING:
            raise NotInvertible(
                f"a cast from {self.old} to {self.new} rounds",
                expected="a cast to a wider type",
                hint="keep the dtype, or keep the source files",
                field="dtype",
            )
        return Narrow(self.at, self.new, self.old)


@dataclass(frozen=True, slots=True)
class Narrow(Cast):
    """The way back from a widening: exact, for the values are those of the narrow type."""

    def inverse(self) -> Cast:
        """Widen again."""
        return Cast(self.at, self.new, self.old)


def kept_dtypes(plan: Plan) -> dict[str, str]:
    """Give the float parameters whose dtype a rule keeps, and the rule's title."""
    rules = () if plan.resolver is None else plan.resolver.rules
    keepers = [rule for rule in rules if isinstance(rule, KeepDtype)]
    floats = (name for name, spec in plan.params.items() if spec.dtype in FLOATS)
    picked = ((name, next((r for r in keepers if r.selects_parameter(name)), None)) for name in floats if keepers)
    return {name: rule.title() for name, rule in picked if rule is not None}


def with_dtype(plan: Plan, dtype: str, keep: Callable[[str], bool] = lambda name: False) -> Plan:
    """Give the plan with every float target cast to `dtype`, but those whose name `keep` picks.

    Codes of 8 bits and less, integers and F64 stay as they are. Raises UsageError for another dtype.
    """
    if dtype not in FLOATS:
        raise UsageError(f"dtype {dtype!r}", expected=", ".join(FLOATS), field="dtype")
    groups = tuple(_cast(group, dtype, keep) for group in plan.groups)
    specs = {name: spec for group in groups for name, spec in group.made}
    params = {name: specs.get(name, spec) for name, spec in plan.params.items()}
    report = replace(plan.report, lossy=tuple(lossy_records(groups)))
    return replace(plan, groups=groups, params=params, report=report, before=plan.before or plan)


def _cast(group: Group, dtype: str, keep: Callable[[str], bool]) -> Group:
    cast = [slot for slot, (name, spec) in enumerate(group.made) if _is_cast(spec, dtype) and not keep(name)]
    if not cast:
        return group
    # What is left over goes with what it was cut from, so that a plan behind this one can join them again.
    over = range(len(group.targets), len(group.program.out_specs))
    cast += [slot for slot in over if _is_cast(group.program.out_specs[slot], dtype)]
    steps = [Cast(slot, group.program.out_specs[slot].dtype or dtype, dtype) for slot in cast]
    return replace(group, program=Program(group.program.in_specs, (*group.program.moves, *steps)))


def _is_cast(spec: TensorSpec, dtype: str) -> bool:
    return spec.dtype in FLOATS and spec.dtype != dtype
