"""Explaining one name after the other does not look through all names each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weightloom.engine import Checkpoint, RuleSet, TensorSpec, build_plan
from weightloom.engine.plan import Kept


class Counted(tuple[Kept, ...]):
    """Counts how often it is gone through."""

    times = 0

    def __iter__(self) -> Iterator[Kept]:
        Counted.times += 1
        return super().__iter__()

    def __reversed__(self) -> Iterator[Kept]:
        Counted.times += 1
        return reversed(tuple(super().__iter__()))


def test_what_is_kept_is_found_by_name() -> None:
    names = [f"name{number}" for number in range(20)]
    checkpoint = Checkpoint.from_specs({name: TensorSpec("F32", (2,)) for name in names})
    plan = build_plan(checkpoint, RuleSet(), {"other": TensorSpec("F32", (2,))})
    plan = replace(plan, kept=Counted(plan.kept))
    before = Counted.times
    assert [plan.explain(name)[-1].kind for name in names] == ["unexpected"] * 20
    assert Counted.times - before <= 1
