"""Adapters planned on a model: what each changes, and all that does not fit, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine import Change, Plan, TensorSpec, changes, plan_adapter
from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.lifting import WHOLE
from weightloom.plugins.adapters import unchangeable, unpacked_specs
from weightloom.runtime.adapter_source import AdapterSource
from weightloom.runtime.rule_choice import model_rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import mlx.nn as nn

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
    source: AdapterSource, architecture: Architecture, module: nn.Module, config: Mapping[str, Any]
) -> AdapterPlan:
    """Plan an adapter on a model by the model's own rules; raises PlanError listing all that does not fit."""
    rules = model_rules(architecture, config, source.layout)
    params = unpacked_specs(module)
    plan = plan_adapter(source.checkpoint, source.names, rules, params, config=config)
    _check(plan, source, params)
    found = changes(plan)
    scales = {each.parameter: _scale(each, source) for each in found}
    made = AdapterPlan(source, plan, found, scales)
    refused = unchangeable(module, [each.parameter for each in found])
    if refused:
        raise _unfit(source, [f"no factors can be put beside {name}" for name in refused], refused[0])
    return made


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
    raise _unfit(source, lines, next(iter(names), None))


def _unfit(source: AdapterSource, lines: Sequence[str], tensor: str | None) -> PlanError:
    return PlanError(
        "\n".join(["the adapter does not fit this model; nothing was changed", *lines]),
        expected="two factors, or one tensor, for each parameter that is changed",
        hint="see whether it was made for this model",
        file=source.path,
        tensor=tensor,
    )
