"""Adapters planned on a model: what each changes, and all that does not fit, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine import Change, Plan, RuleSet, TensorSpec, changes, plan_adapter
from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.planning.lifting import WHOLE
from weightloom.runtime.adapting.adapter_source import AdapterSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weightloom.plugins.architecture import Architecture

KIND = "lora"
_UNFIT = ("unexpected", "missing", "mismatched", "incomplete", "ambiguous")


@dataclass(frozen=True)
class AdapterPlan:
    """What an adapter does to a model: changes of low rank with the scale of each, and tensors in place of its own."""

    source: AdapterSource
    plan: Plan
    changes: tuple[Change, ...]
    scales: Mapping[str, float]

    @property
    def replaced(self) -> tuple[str, ...]:
        """The parameters that are replaced."""
        prefix = f"{WHOLE}."
        return tuple(sorted(name.removeprefix(prefix) for name in self.plan.params if name.startswith(prefix)))


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
    plan = plan_adapter(source.checkpoint, source.names, rules, params, config=config)
    _check(plan, source, params)
    found = changes(plan)
    return AdapterPlan(source, plan, found, {each.parameter: _scale(each, source) for each in found})


def _scale(change: Change, source: AdapterSource) -> float:
    """Give the scale that all parts of a change have; raises PlanError where they differ."""
    return change.alpha({name: source.scale(name) for name, _ in change.parts}) / change.rank


def _check(plan: Plan, source: AdapterSource, params: Mapping[str, TensorSpec]) -> None:
    """Raise PlanError with every name that leads nowhere or does not fit, however many there are."""
    if plan.ok():
        return
    lines = [f"  {kind}: {item}" for kind in _UNFIT for item in getattr(plan.report, kind)]
    if not plan.groups:
        lines = [f"none of {len(plan.sources)} tensors leads to a parameter of {len(params)}", *lines]
    names = (*plan.report.unexpected, *plan.report.missing, *(each.parameter for each in plan.report.mismatched))
    raise unfit(source, lines, next(iter(names), None))


def unfit(source: AdapterSource, lines: Sequence[str], tensor: str | None) -> PlanError:
    """Give the error that lists all that does not fit."""
    return PlanError(
        "\n".join(["the adapter does not fit this model; nothing was changed", *lines]),
        expected="two factors, or one tensor, for each parameter that is changed",
        hint="see whether it was made for this model",
        file=source.path,
        tensor=tensor,
    )
