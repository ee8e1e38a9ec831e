"""How much memory a model will take, worked out from headers: nothing is read or computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.reading.memory import memory
from weightloom.engine.reading.threads import thread_count
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.inspecting.foreseen import Foreseen
from weightloom.runtime.inspecting.memory_need import CacheNeed, MemoryNeed, memory_need
from weightloom.runtime.inspecting.reading import Target, plan_opened
from weightloom.runtime.loading.towers import unused_by_text
from weightloom.runtime.opening.opening import Opened

if TYPE_CHECKING:
    import mlx.nn as nn


def foresee(opened: Opened, choice: Choice, asked: Foreseen) -> MemoryNeed:
    """Plan as a load does, and add up; raises as planning does.

    Without an installed architecture the parameters are those that the rules give, and of a cache nothing is known.
    """
    plan, target = plan_opened(opened, choice)
    if target.prepared is None:
        return _of_rules(plan, target, asked)
    from weightloom.runtime.loading.widening import widened
    from weightloom.runtime.preparing.casting import asked_dtype
    from weightloom.runtime.quantizing.quantized_model import as_asked, unpacked
    from weightloom.runtime.quantizing.wish import asked_quantizing

    quantizing = asked_quantizing(asked.quantize)
    found, _ = as_asked(unpacked(target.prepared, quantizing), asked_dtype(asked.dtype), quantizing)
    plan = widened(found.plan)
    cache = None if asked.context is None else _cache(plan, found.module, asked.context, asked.batch)
    idle = sum(plan.params[name].nbytes for name in unused_by_text(plan, found.architecture.towers))
    return memory_need(plan.nbytes, _scratch(plan), cache, idle)


def _of_rules(plan: Plan, target: Target, asked: Foreseen) -> MemoryNeed:
    if asked.quantize is not None:
        raise UsageError(
            f"quantize was given, and the target is {target}",
            expected="an architecture that is installed, whose modules are packed",
            field="quantize",
        )
    if asked.dtype is not None:
        from weightloom.runtime.preparing.casting import asked_dtype, casting

        plan = casting(asked_dtype(asked.dtype), plan, None).of(plan)
    cache = None if asked.context is None else CacheNeed(asked.context, asked.batch, unknown=str(target))
    return memory_need(plan.nbytes, _scratch(plan), cache)


def _scratch(plan: Plan) -> int:
    return memory(plan, thread_count(None)).total - plan.nbytes


def _cache(plan: Plan, module: nn.Module, context: int, batch: int) -> CacheNeed:
    if plan.report.missing or plan.report.wrong:
        return CacheNeed(context, batch, unknown="the checkpoint does not fit its architecture; see `weightloom plan`")
    from weightloom.plugins.modules.caches_to_come import cache_sizes

    found = cache_sizes(module, plan.params, context, batch)
    if found is None:
        return CacheNeed(context, batch, unknown="the model keeps nothing from call to call")
    return CacheNeed(context, batch, found)
