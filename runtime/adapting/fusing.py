"""Adapters fused into a plan: read and checked first, then steps on the parameters that they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import RuleSet
from weightloom.engine.errors import UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.repacked import repacked
from weightloom.engine.show import listed
from weightloom.engine.surgery import operate
from weightloom.engine.surgery.fuse import Factors, Fuse
from weightloom.engine.surgery.packed import companions
from weightloom.runtime.adapting.adapter_plan import AdapterPlan, plan_on
from weightloom.runtime.adapting.adapter_source import open_adapter
from weightloom.runtime.adapting.losses import Fit, Loss, LossPolicy, fits
from weightloom.runtime.adapting.packed_forms import as_unpacked, packed_forms
from weightloom.runtime.adapting.wish import Weighted, check_directories

if TYPE_CHECKING:
    import mlx.core as mx

_WHY = "an adapter changed its tensors"


@dataclass(frozen=True)
class Base:
    """What adapters are fused into: a plan that fits, the config, and the rules by the layout that one was made for."""

    plan: Plan
    rules: Callable[[str], RuleSet]
    config: Mapping[str, Any]

    __hash__ = None  # type: ignore[assignment]  # it holds mappings


@dataclass(frozen=True)
class Fused:
    """The plan to the changed parameters, what rounding takes of each that is packed, and what was set aside.

    `reformed` are packed parameters that have another form now: more bits, or None for floats.
    """

    plan: Plan
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    reformed: Mapping[str, Quantization | None] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def fused(base: Base, adapters: Sequence[Weighted], policy: LossPolicy) -> Fused:
    """Give a plan to the parameters that adapters, each with a scale, have changed; their factors are read.

    Dense parameters are summed in float32 and rounded once; packed ones are unpacked, summed and packed again, and
    `policy` says what is done where too much is lost. With scale 0 an adapter is checked and changes nothing. Raises
    PlanError listing all that does not fit, or loses too much; UsageError for a directory that is not there, two
    adapters that replace one parameter, or one that is packed in another way than MLX's; and as `open_adapter` and
    reading do.
    """
    check_directories([path for path, _ in adapters])
    forms = packed_forms(base.plan, base.config)
    read = [(_read(path, base, as_unpacked(base.plan.params, forms)), scale) for path, scale in adapters]
    notes = tuple(f"{each.path}: {note}" for each, _ in read for note in each.plan.notes)
    fuse = _fuse([(each, scale) for each, scale in read if scale != 0])
    changed = {*fuse.factors, *fuse.whole}
    _refuse_packed(changed & companions(base.plan.params).keys() - forms.keys(), adapters)
    found = fits(base.plan, forms, {name: tuple(fuse.steps(name)) for name in changed & forms.keys()}, policy)
    plan = operate(base.plan, [fuse.without(forms)]).plan
    steps = {fit.loss.parameter: fit.step for fit in found}
    reformed = {fit.loss.parameter: fit.form for fit in found if fit.loss.made != fit.loss.form}
    return Fused(_told(repacked(plan, steps, _WHY), found), tuple(fit.loss for fit in found), notes, reformed)


def _told(plan: Plan, found: Sequence[Fit]) -> Plan:
    """Let the plan's report say what is lost of each packed parameter's change."""
    return replace(plan, report=replace(plan.report, notes=(*plan.report.notes, *(str(fit.loss) for fit in found))))


@dataclass(frozen=True, eq=False)
class _Read:
    path: Path
    plan: AdapterPlan
    arrays: Mapping[str, mx.array]

    @property
    def whole(self) -> Mapping[str, mx.array]:
        """The arrays that replace parameters, by parameter."""
        return self.plan.whole(self.arrays)


def _read(path: Path, base: Base, params: Mapping[str, Any]) -> _Read:
    source = open_adapter(path)
    with closing(source.checkpoint):
        found = plan_on(source, base.rules(source.layout), params, base.config)
        return _Read(path, found, found.plan.load())


def _fuse(read: Sequence[tuple[_Read, float]]) -> Fuse:
    """Put the changes of all adapters together, by parameter."""
    factors: dict[str, list[Factors]] = {}
    whole: dict[str, mx.array] = {}
    for one, scale in read:
        for name, made in one.plan.factors(one.arrays, scale):
            factors.setdefault(name, []).append(made)
        _refuse_replaced(one, whole)
        whole |= one.whole
    return Fuse(factors, whole)


def _refuse_packed(packed: set[str], adapters: Sequence[Weighted]) -> None:
    """Raise UsageError for parameters that are packed in a way that is not written here."""
    if packed:
        raise UsageError(
            f"{listed(sorted(packed))} are packed, and not as MLX packs weights",
            expected="plain weights, or words, scales and biases as MLX makes them",
            hint="convert the base with --layout mlx first, or load the adapter beside this one",
            file=adapters[0][0],
            tensor=min(packed),
            field="adapter",
        )


def _refuse_replaced(one: _Read, whole: Mapping[str, mx.array]) -> None:
    """Raise UsageError for parameters that are replaced by others than these already."""
    import mlx.core as mx

    twice = [name for name, array in one.whole.items() if name in whole and not mx.array_equal(array, whole[name])]
    if twice:
        raise UsageError(
            f"two adapters replace {', '.join(sorted(twice))}", expected="one at most", file=one.path, field="adapter"
        )
