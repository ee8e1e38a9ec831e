"""Strands: what a plan says of each tensor and parameter, one after the other, before any are drawn together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.runtime.picture.kinds import kind_of


@dataclass(frozen=True, slots=True)
class Strand:
    """Tensors, the parameters that they lead to, and of what kind that is; either may be none.

    `rule` is the title of the rule that decided where no group says it, `note` what else there is to say.
    """

    kind: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    group: Group | None = None
    rule: str | None = None
    note: str = ""


def strands(plan: Plan) -> Iterator[Strand]:
    """Give every tensor and every parameter of a plan once; a tied parameter comes with the tensors of the other."""
    sources, targets = set[str](), set[str]()
    for strand in (*_grouped(plan), *_misfits(plan)):
        left = tuple(name for name in strand.sources if name not in sources)
        right = tuple(name for name in strand.targets if name not in targets)
        if left or right:
            yield strand if strand.group else _with_ends(strand, left, right)
        sources.update(left)
        targets.update(right)
    yield from _tied(plan, targets)


def _with_ends(strand: Strand, left: tuple[str, ...], right: tuple[str, ...]) -> Strand:
    return Strand(strand.kind, left, right, None, strand.rule, strand.note)


def _grouped(plan: Plan) -> Iterator[Strand]:
    notes = {record.parameter: _seen_and_expected(record.seen, record.expected) for record in plan.report.mismatched}
    for group in plan.groups:
        note = next((notes[name] for name in group.targets if name in notes), None)
        kind = kind_of(group) if note is None else "mismatched"
        yield Strand(kind, group.sources, group.targets, group, note=note or "")
    for group in plan.copies:
        yield Strand("tied", group.sources, group.targets, group, note=_tie(plan, group.targets[0]))


def _misfits(plan: Plan) -> Iterator[Strand]:
    report = plan.report
    for wrong in report.mismatched:
        note = _seen_and_expected(wrong.seen, wrong.expected)
        yield Strand("mismatched", wrong.sources, (wrong.parameter,), rule=wrong.rule, note=note)
    for twice in report.ambiguous:
        left = tuple(name for name in (twice.name, *twice.claimants) if name in plan.sources)
        right = () if twice.name in plan.sources else (twice.name,)
        yield Strand("ambiguous", left, right, note=twice.why)
    for broken in report.incomplete:
        yield Strand("incomplete", (), broken.parameters, rule=broken.rule)
    yield from (Strand("missing", (), (name,)) for name in report.missing)
    dropped: Mapping[str, tuple[str, str]] = {each.name: (each.rule, each.why) for each in report.dropped}
    for kept in plan.kept:
        rule, why = dropped.get(kept.name, (None, ""))
        yield Strand(kept.reason, (kept.name,), (), rule=rule, note=why)


def _tied(plan: Plan, drawn: set[str]) -> Iterator[Strand]:
    for record in plan.report.tied:
        group = plan.by_target.get(record.other)
        if record.parameter not in drawn and group is not None:
            yield Strand("tied", group.sources, (record.parameter,), rule=record.rule, note=f"shares {record.other}")


def _tie(plan: Plan, target: str) -> str:
    return next((str(record) for record in plan.report.tied if record.parameter == target), "")


def _seen_and_expected(seen: str, expected: str) -> str:
    return f"{seen}; expected {expected}" if expected else seen
