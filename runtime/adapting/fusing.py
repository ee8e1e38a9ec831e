"""Adapters fused into a plan: read and checked first, then steps on the parameters that they change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.lifting import WHOLE
from weightloom.engine.show import listed
from weightloom.engine.surgery import operate
from weightloom.engine.surgery.fuse import Factors, Fuse
from weightloom.engine.surgery.packed import companions
from weightloom.runtime.adapting.adapter_plan import AdapterPlan, plan_on
from weightloom.runtime.adapting.adapter_source import open_adapter
from weightloom.runtime.adapting.wish import Weighted, check_directories
from weightloom.runtime.choosing.choice import Choice, only_shipped

if TYPE_CHECKING:
    import mlx.core as mx


def fused(plan: Plan, adapters: Sequence[Weighted], choice: Choice) -> Plan:
    """Give a plan to the parameters that adapters, each with a scale, have changed; their factors are read.

    With scale 0 an adapter is checked and changes nothing. Raises PlanError listing all that does not fit, UsageError
    for a directory that is not there, or two adapters that replace one parameter, and as `open_adapter` and reading do.
    """
    check_directories([path for path, _ in adapters])
    factors: dict[str, list[Factors]] = {}
    whole: dict[str, mx.array] = {}
    for path, scale in adapters:
        found, arrays = _read(path, plan, choice)
        if scale == 0:
            continue
        for each in found.changes:
            made = Factors(arrays[each.a], arrays[each.b], scale * found.scales[each.parameter])
            factors.setdefault(each.parameter, []).append(made)
        _refuse_replaced(found, whole, path)
        whole |= {name: arrays[f"{WHOLE}.{name}"] for name in found.replaced}
    return operate(plan, [Fuse(factors, whole)]).plan


def notes_on_adapters(adapters: Sequence[Weighted]) -> Iterator[str]:
    """Say what was set aside of adapters that are fused; raises as `open_adapter` does."""
    for path, _ in adapters:
        source = open_adapter(path)
        with closing(source.checkpoint):
            yield from (f"{path}: {note}" for note in source.notes)


def _read(path: Path, plan: Plan, choice: Choice) -> tuple[AdapterPlan, dict[str, mx.array]]:
    source = open_adapter(path)
    with closing(source.checkpoint):
        config = choice.config.values if choice.config else {}
        rules = only_shipped(choice).rules_in(source.layout)
        _refuse_packed(plan, path)
        found = plan_on(source, rules, plan.params, config)
        return found, dict(found.plan.load())


def _refuse_packed(plan: Plan, path: Path) -> None:
    """Raise UsageError for a base with packed matrices, since what is added may be rounded away there."""
    packed = companions(plan.params)
    if packed:
        raise UsageError(
            f"{listed(sorted(packed))} are packed, and adapters are fused into plain weights alone",
            expected="a base that is not quantized",
            hint="fuse into the base before it was quantized, or load the adapter beside this one",
            file=path,
            tensor=min(packed),
            field="adapter",
        )


def _refuse_replaced(found: AdapterPlan, whole: dict[str, mx.array], path: Path) -> None:
    twice = sorted(set(found.replaced) & set(whole))
    if twice:
        raise UsageError(f"two adapters replace {', '.join(twice)}", expected="one at most", file=path, field="adapter")
