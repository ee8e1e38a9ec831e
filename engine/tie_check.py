"""The check that needs values: where a checkpoint has both ends of a tie, they hold the same bytes."""

from __future__ import annotations

from weightloom.engine.errors import PlanError
from weightloom.engine.gather import Reader, gather
from weightloom.engine.plan import Plan
from weightloom.engine.report import Tied
from weightloom.engine.view import View

_BLOCK = 4 << 20


def check_ties(plan: Plan) -> None:
    """Compare the two ends of each tie; raises PlanError, naming both tensors, where they differ."""
    plan = plan.before or plan
    for record in plan.report.tied:
        if record.copy:
            _check(plan, record)


def _check(plan: Plan, record: Tied) -> None:
    views, readers, names = [], [], []
    for end in (record.parameter, record.other):
        group = plan.by_target[end]
        views.append(group.program.views()[group.targets.index(end)])
        readers.append(_reader(plan, group.sources))
        names.append(", ".join(group.sources[:2]))
    for start, stop in _blocks(views[0]):
        first, second = (_bytes(v, r, start, stop) for v, r in zip(views, readers, strict=True))
        if first != second:
            raise PlanError(
                f"{names[0]} and {names[1]} differ, and {record.rule} says that they are one tensor",
                expected="two equal copies, or one",
                hint="set tie_word_embeddings to false to keep both, or remove the one that is not meant",
                tensor=record.parameter,
                rule=record.rule,
            )


def _reader(plan: Plan, sources: tuple[str, ...]) -> Reader:
    assert plan.checkpoint is not None
    checkpoint = plan.checkpoint
    return lambda slot, offset, buffer: checkpoint.read_into(sources[slot], offset, buffer)


def _blocks(view: View) -> list[tuple[int, int]]:
    """Row ranges of a few MiB each; one for a tensor without rows."""
    if not view.shape:
        return [(0, 0)]
    rows = view.shape[0]
    step = max(1, _BLOCK * rows // max(view.nbytes, 1))
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def _bytes(view: View, read: Reader, start: int, stop: int) -> bytearray:
    part = view.cut(0, start, stop) if view.shape else view
    out = bytearray(part.nbytes)
    gather(part, read, memoryview(out))
    return out
