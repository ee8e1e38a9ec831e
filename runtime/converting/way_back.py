"""The way back to a source that is recorded beside the weights: the plan that led from it, turned round."""

from __future__ import annotations

from dataclasses import replace

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import CheckpointError, PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.saving.save import plan_targets
from weightloom.runtime.choosing.choice import Choice, Wish, choose
from weightloom.runtime.converting.conversion_plan import conversion_plan
from weightloom.runtime.opening.kept import Kept
from weightloom.runtime.opening.opening import Opened


def source_choice(kept: Kept, wish: Wish, place: str) -> Choice:
    """Choose the rules of the recorded source, in the layout that it was in; raises as `choose` does."""
    wish = replace(wish, layout=kept.note.source_layout, model_type=kept.note.model_type or wish.model_type)
    return choose(kept.config, wish, place)


def way_back(opened: Opened, kept: Kept, wish: Wish) -> Plan:
    """Give the plan from the recorded source to the weights at hand, which is inverted to go back.

    Raises CheckpointError where the rules of today do not lead from that source to these weights, NotInvertible where
    there is no way back.
    """
    place = str(opened.path)
    source = replace(opened, checkpoint=kept.source, config=kept.config, layout=kept.note.source_layout, kept=None)
    try:
        plan = conversion_plan(source, source_choice(kept, wish, place), kept.note.layout, None).plan
    except PlanError as error:
        raise _does_not_lead(kept, error.seen) from error
    _check_same(plan_targets(plan), opened.checkpoint, kept)
    plan.inverse()
    return plan


def _check_same(plan: Plan, written: Checkpoint, kept: Kept) -> None:
    made = {name: spec.logical() for name, spec in plan.params.items()}
    found = {name: spec.logical() for name, spec in written.tensors.items()}
    differing = sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
    if differing:
        name = differing[0]
        raise _does_not_lead(kept, f"{name} would be {made.get(name, 'absent')}, and is {found.get(name, 'absent')}")


def _does_not_lead(kept: Kept, seen: str) -> CheckpointError:
    return CheckpointError(
        f"today's rules do not lead from the recorded source to these weights: {seen}",
        expected="the rules by which the weights were made",
        hint=f"give the same --rules, or remove {kept.path.name} to go on without what it keeps",
        file=kept.path,
    )
