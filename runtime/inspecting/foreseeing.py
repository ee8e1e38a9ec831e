"""How much memory a model will take, worked out from headers: nothing is read or computed."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.errors import UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.reading.memory import memory
from weightloom.engine.reading.threads import thread_count
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.inspecting.memory_need import CacheNeed, MemoryNeed, memory_need
from weightloom.runtime.inspecting.reading import Target, plan_opened
from weightloom.runtime.opening.opening import Opened


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What memory is asked about: the dtype to cast to, and the context, in tokens, of a batch of sequences."""

    dtype: str | None = None
    context: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        for name, value in (("context", self.context), ("batch", self.batch)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}", expected="1 or more", field=name)


def foresee(opened: Opened, choice: Choice, asked: Foreseen) -> MemoryNeed:
    """Plan as a load does, and add up; raises as planning does.

    Without an installed architecture the parameters are those that the rules give, and of a cache nothing is known.
    """
    plan, target = plan_opened(opened, choice)
    plan = _as_loaded(plan, target, asked.dtype)
    need = memory(plan, thread_count(None))
    cache = None if asked.context is None else _cache(plan, target, asked.context, asked.batch)
    return memory_need(plan.nbytes, need.total - plan.nbytes, cache)


def _as_loaded(plan: Plan, target: Target, dtype: str | None) -> Plan:
    """Give the plan that a load carries out, which casts, and widens what the CPU is slow with."""
    if dtype is not None:
        from weightloom.runtime.preparing.casting import asked_dtype, casting

        plan = casting(asked_dtype(dtype), plan, target.architecture).of(plan)
    if target.module is None:
        return plan
    from weightloom.runtime.loading.widening import widened

    return widened(plan)


def _cache(plan: Plan, target: Target, context: int, batch: int) -> CacheNeed:
    if target.module is None:
        return CacheNeed(context, batch, unknown=str(target))
    plan.check()
    from weightloom.plugins.caches_to_come import cache_sizes

    found = cache_sizes(target.module, plan.params, context, batch)
    if found is None:
        return CacheNeed(context, batch, unknown="the model keeps nothing from call to call")
    return CacheNeed(context, batch, found)
