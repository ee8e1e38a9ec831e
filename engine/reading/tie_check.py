"""The check that needs values: where a checkpoint has both ends of a tie, they hold the same bytes."""

from __future__ import annotations

from itertools import zip_longest

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.report import Tied
from weightloom.engine.reading.origin import CheckpointOrigin
from weightloom.engine.reading.results import Results, block_bytes


def check_ties(plan: Plan) -> None:
    """Compare the two ends of each tie; raises PlanError, naming both tensors, where they differ."""
    plan = plan.before or plan
    pairs = [(record, *_ends(plan, record)) for record in plan.report.tied if record.copy]
    if not pairs:
        return
    assert plan.checkpoint is not None
    results = Results(CheckpointOrigin(plan.checkpoint))
    for record, copy, group in pairs:
        _check(record, copy, group, results)


def check_tie(plan: Plan, record: Tied) -> None:
    """Compare the two ends of one tie of which both are in the checkpoint; raises as `check_ties`."""
    plan = plan.before or plan
    assert plan.checkpoint is not None
    _check(record, *_ends(plan, record), Results(CheckpointOrigin(plan.checkpoint)))


def scratch(plan: Plan) -> int:
    """Give the bytes that the check holds at most, from headers alone."""
    plan = plan.before or plan
    ends = [end for record in plan.report.tied if record.copy for end in _ends(plan, record)]
    return 2 * max((block_bytes(group.program.out_specs[number]) for group, number in ends), default=0)


def _ends(plan: Plan, record: Tied) -> tuple[tuple[Group, int], tuple[Group, int]]:
    """The group of each end, and which of its results it is."""
    groups = plan.by_target[record.parameter], plan.by_target[record.other]
    return (
        (groups[0], groups[0].targets.index(record.parameter)),
        (groups[1], groups[1].targets.index(record.other)),
    )


def _check(record: Tied, copy: tuple[Group, int], group: tuple[Group, int], results: Results) -> None:
    blocks = zip_longest(results.pieces(*copy), results.pieces(*group))
    if any(first != second for first, second in blocks):
        names = (", ".join(end[0].sources[:2]) for end in (copy, group))
        raise PlanError(
            f"{' and '.join(names)} differ, and {record.rule} says that they are one tensor",
            expected="two equal copies, or one",
            hint="set tie_word_embeddings to false to keep both, or remove the one that is not meant",
            tensor=record.parameter,
            rule=record.rule,
        )
