"""What can be wrong in one layout: with a rule by itself, and between its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weightloom.engine.errors import WeightloomError
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.rules.document import RuleItem
from weightloom.rules.linting.ops import ops_complaint
from weightloom.rules.linting.patterns import pattern_complaints
from weightloom.rules.linting.rivals import rivals
from weightloom.rules.linting.starved import starved
from weightloom.rules.problems import Mark
from weightloom.rules.source_texts import source_texts

Complaint = tuple[Mark, str, str]


def layout_complaints(items: Sequence[RuleItem], above: Sequence[RuleItem] = ()) -> Iterator[Complaint]:
    """Yield (place, code, message) for each thing that is wrong with a layout's own items, behind those it extends."""
    for item in items:
        yield from _of_one(item)
    yield from rivals((*above, *items), len(above))
    yield from starved((*above, *items), len(above))


def _of_one(item: RuleItem) -> Iterator[Complaint]:
    rule = item.rule
    for text in source_texts(rule):
        yield from ((item.mark_of(text), code, message) for code, message in pattern_complaints(text))
    if rule.fidelity != "lossy" and rule.always:
        yield from _without_inverse(item)
    if isinstance(rule, WeightConverter):
        reason = ops_complaint(rule)
        if reason is not None:
            yield item.at, "WL109", f"the ops of '{rule.summary()}' cannot be lowered: {reason}"


def _without_inverse(item: RuleItem) -> Iterator[Complaint]:
    try:
        item.rule.inverse()
    except WeightloomError as error:
        yield item.at, "WL110", f"{error.seen}; say `fidelity: lossy`, or `always: false` if it is never written"
