"""What goes beside weights in a layout that has no room for all: the tensors that it keeps, and the source's record."""

from __future__ import annotations

from weightloom.engine.checkpoints.kept_note import KeptNote, bytes_digest, specs_digest
from weightloom.engine.plan import Plan
from weightloom.engine.saving.kept_file import data_lengths, kept_shard
from weightloom.engine.saving.save import plan_targets
from weightloom.engine.saving.shard_plan import ShardPlan
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.opening.opening import Opened


def keeps_beside(plan: Plan) -> tuple[str, ...]:
    """Name the source tensors whose bytes do not follow from what the plan makes.

    Those that it leaves out, and those of groups that round or leave something over.
    """
    names = {kept.name for kept in plan.kept}
    for group in plan.groups:
        if group.program.rounds or len(group.program.out_specs) > len(group.targets):
            names.update(group.sources)
    return tuple(sorted(names))


def kept_beside(opened: Opened, choice: Choice, plan: Plan, layout: str, config: bytes | None) -> ShardPlan:
    """Lay out the file of kept tensors for a plan from a checkpoint to `layout`; `config` goes beside the weights."""
    source = opened.checkpoint
    note = KeptNote(
        layout=layout,
        source_layout=choice.layout,
        weights=specs_digest(plan_targets(plan).params),
        config="" if config is None else bytes_digest(config),
        model_type=choice.wish.model_type or "",
        lengths=data_lengths(source),
    )
    own = None if opened.beside is None else opened.beside.raw
    return kept_shard(source, keeps_beside(plan), own, note)
