"""When parameters are read: all at once, each when it is first used, or all but those of towers that may never run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from weightloom.engine import Plan
from weightloom.engine.errors import UsageError
from weightloom.engine.planning.composing.part import part_of
from weightloom.plugins.modules.binding import bind, parameters
from weightloom.plugins.modules.deferring import bind_lazily
from weightloom.runtime.loading.towers import unused_by_text

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn

VARIABLE = "WEIGHTLOOM_MATERIALIZE"
# "needed": eager, but for the towers of an architecture, which a text prompt does not use.
Mode = Literal["lazy", "eager", "needed"]
Read = Callable[[Plan], Mapping[str, "mx.array"]]


def asked_mode(lazy: bool | None) -> Mode:
    """Give the mode that the caller asks for, else the variable WEIGHTLOOM_MATERIALIZE, else `needed`.

    Raises UsageError for another value of the variable, also where the caller's word goes before it.
    """
    value = os.environ.get(VARIABLE)
    if value not in (None, "", "lazy", "eager"):
        raise UsageError(
            f"{VARIABLE} is {value!r}", expected="lazy or eager", hint="correct it, or unset it", field=VARIABLE
        )
    if lazy is not None:
        return "lazy" if lazy else "eager"
    if value == "lazy":
        return "lazy"
    return "eager" if value == "eager" else "needed"


def refuse_with_lazy(mode: Mode, cut: bool, fuse: bool) -> None:
    """Raise UsageError for a lazy model that is cut among ranks or fused: both read at once."""
    asked = "sharding" if cut else "fuse" if fuse else None
    if mode == "lazy" and asked is not None:
        raise UsageError(
            f"lazy and {asked} were both given",
            expected="one of them",
            hint=f"load with lazy=False, or without {VARIABLE}=lazy",
            field="lazy",
        )


def fill(module: nn.Module, plan: Plan, mode: Mode, towers: Iterable[str], read: Read, strict: bool) -> None:
    """Bind a plan's parameters: what is read now by `read`, the rest lazily; `towers` are paths of modules.

    What a lenient load lacks stays as the module made it; the report and the notes name it.
    """
    initial = {name: array for name, array in parameters(module).items() if name in plan.report.missing}
    waiting = set(plan.params) if mode == "lazy" else unused_by_text(plan, towers) if mode == "needed" else set()
    if not waiting:
        bind(module, {**initial, **read(plan)})
    elif waiting == set(plan.params):
        bind_lazily(module, plan.lazy(strict=strict), kept=initial)
    else:
        _in_parts(module, plan, waiting, initial, read)
    module.eval()


def _in_parts(module: nn.Module, plan: Plan, waiting: set[str], initial: Mapping[str, mx.array], read: Read) -> None:
    from mlx.utils import tree_unflatten

    now = read(part_of(plan, set(plan.params) - waiting))
    module.update(tree_unflatten(list(now.items())))
    # What the whole lacks was judged before: of a part, all that it names is there.
    bind_lazily(module, part_of(plan, waiting).lazy(strict=False), kept={**initial, **now})
