"""Small plans with a thread of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weightloom.engine import Checkpoint, Plan, Rule, TensorSpec, build_plan
from weightloom.runtime.picture.drawing import draw
from weightloom.runtime.picture.picture import Picture, Row, Thread

Shapes = Mapping[str, tuple[int, ...]]


def specs(shapes: Shapes, dtype: str = "F32") -> dict[str, TensorSpec]:
    return {name: TensorSpec(dtype, shape) for name, shape in shapes.items()}


def plan_of(disk: Shapes, rules: Sequence[Rule], params: Shapes | None = None) -> Plan:
    wanted = None if params is None else specs(params)
    return build_plan(Checkpoint.from_specs(specs(disk)), rules, wanted)


def picture(disk: Shapes, rules: Sequence[Rule] = (), params: Shapes | None = None) -> Picture:
    wanted = None if params is None else specs(params)
    return draw(plan_of(disk, rules, params), "here", facts={}, wanted=wanted)


def template(row: Row) -> str:
    return "*".join(row.parts)


def threads(found: Picture) -> dict[str, Thread]:
    """Give the threads by their kinds; a kind that comes twice is a mistake of the test."""
    by_kind = {thread.kind: thread for thread in found.threads}
    assert len(by_kind) == len(found.threads), [thread.kind for thread in found.threads]
    return by_kind


def ends(found: Picture, thread: Thread) -> tuple[list[str], list[str]]:
    left = [template(found.left[place]) for place in thread.left]
    return left, [template(found.right[place]) for place in thread.right]
