"""Adapters planned on a model: what each changes, and all that does not fit, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine import Change, Plan, RuleSet, TensorSpec, changes, plan_adapter
from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.planning.cast import FLOATS
from weightloom.engine.planning.lifting import COLUMNS, ROWS, WHOLE, A
from weightloom.engine.surgery.fuse import Factors
from weightloom.engine.surgery.lengths import Lengths
from weightloom.runtime.adapting.adapter_source import AdapterSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import mlx.core as mx

    from weightloom.plugins.architecture import Architecture

KIND, DECOMPOSED = "lora", "dora"
_UNFIT = ("unexpected", "missing", "mismatched", "incomplete", "ambiguous")


@dataclass(frozen=True)
class AdapterPlan:
    """What an adapter does to a model: changes of low rank with the scale of each, and tensors in place of its own.

    `notes` says what was set aside of its config.
    """

    source: AdapterSource
    plan: Plan
    changes: tuple[Change, ...]
    scales: Mapping[str, float]
    notes: tuple[str, ...] = ()

    @property
    def replaced(self) -> tuple[str, ...]:
        """The parameters that are replaced."""
        prefix = f"{WHOLE}."
        return tuple(sorted(name.removeprefix(prefix) for name in self.plan.params if name.startswith(prefix)))

    def whole(self, arrays: Mapping[str, mx.array]) -> dict[str, mx.array]:
        """Give the arrays that replace parameters, by parameter; `arrays` are the plan's."""
        return {name: arrays[f"{WHOLE}.{name}"] for name in self.replaced}

    def factors(self, arrays: Mapping[str, mx.array], share: float = 1.0) -> Iterator[tuple[str, Factors]]:
        """Give each changed parameter with the change, of which a share is made; `arrays` are the plan's."""
        for each in self.changes:
            a, b, scale = arrays[each.a], arrays[each.b], self.scales[each.parameter]
            yield each.parameter, Factors(a, b, scale, _lengths(each, arrays), share)


def _lengths(change: Change, arrays: Mapping[str, mx.array]) -> Lengths | None:
    if change.magnitude is None:
        return None
    return Lengths(arrays[change.magnitude], -2 if change.by_columns else -1)


def refuse_unless_taken(architecture: Architecture, kind: str = KIND) -> None:
    """Raise UsageError, with the architecture's reason, where it takes no adapters of a kind."""
    taken = architecture.adapters
    if isinstance(taken, str) or kind not in taken:
        raise UsageError(
            f"{architecture.name} takes no {kind} adapter" + (f": {taken}" if isinstance(taken, str) else ""),
            expected="a model without adapters" if isinstance(taken, str) else f"one of {', '.join(taken)}",
            field="adapter",
        )


def plan_on(
    source: AdapterSource, rules: RuleSet, params: Mapping[str, TensorSpec], config: Mapping[str, Any]
) -> AdapterPlan:
    """Plan an adapter on a model's parameters by its rules for the layout that the adapter was made for.

    Raises PlanError listing all that does not fit.
    """
    fitted = source.fit(params, rules.base_model_prefix)
    plan = plan_adapter(source.checkpoint, fitted.names, rules, params, config=config)
    _check(plan, source, params, fitted.decomposed)
    found = changes(plan)
    scales = {each.parameter: _scale(each, fitted.scales) for each in found}
    return AdapterPlan(source, plan, found, scales, fitted.notes)


def _scale(change: Change, scales: Mapping[str, float]) -> float:
    """Give the scale that all parts of a change have; raises PlanError where they differ."""
    return change.alpha({name: scales[name] for name, _ in change.parts}) / change.rank


def _check(plan: Plan, source: AdapterSource, params: Mapping[str, TensorSpec], decomposed: bool) -> None:
    """Raise PlanError with every name that leads nowhere, does not fit or lacks, however many there are."""
    lacking = _without_magnitudes(plan) if decomposed else []
    others = _no_floats(plan)
    if plan.ok() and plan.groups and not lacking and not others:
        return
    lines = [f"  {kind}: {item}" for kind in _UNFIT for item in getattr(plan.report, kind)]
    lines += [f"  missing: {name}, for all changes are decomposed" for name in lacking]
    lines += [f"  mismatched: {name}: {spec}; expected one of {', '.join(FLOATS)}" for name, spec in others.items()]
    if not plan.groups:
        lines = [f"none of {len(plan.sources)} tensors leads to a parameter of {len(params)}", *lines]
    mismatched = (each.parameter for each in plan.report.mismatched)
    names = (*plan.report.unexpected, *plan.report.missing, *mismatched, *lacking, *others)
    raise unfit(source, lines, next(iter(names), None))


def _no_floats(plan: Plan) -> dict[str, TensorSpec]:
    """Give what is of no dtype that can be computed with: codes, whose scales no adapter has, integers, F64."""
    return {name: spec for name, spec in sorted(plan.params.items()) if spec.dtype not in FLOATS}


def _without_magnitudes(plan: Plan) -> list[str]:
    """Name the magnitudes that changed parameters lack."""
    changed = sorted(name.removeprefix(f"{A}.") for name in plan.params if name.startswith(f"{A}."))
    return [
        f"{ROWS}.{name}" for name in changed if plan.params.keys().isdisjoint((f"{ROWS}.{name}", f"{COLUMNS}.{name}"))
    ]


def unfit(source: AdapterSource, lines: Sequence[str], tensor: str | None) -> PlanError:
    """Give the error that lists all that does not fit."""
    return PlanError(
        "\n".join(["the adapter does not fit this model; nothing was changed", *lines]),
        expected="two factors, or one tensor, for each parameter that is changed",
        hint="see whether it was made for this model",
        file=source.path,
        tensor=tensor,
    )
