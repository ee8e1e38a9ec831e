"""What can be wrong between the rules of one layout, and with one rule as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from weightloom.engine.claims import Absent, Drop, KeepDtype, Tie
from weightloom.engine.converter import WeightConverter
from weightloom.engine.drop_layers import DropLayers
from weightloom.engine.errors import WeightloomError
from weightloom.engine.prefix import PrefixChange
from weightloom.engine.renaming import Renaming, WeightRenaming
from weightloom.engine.rule import Rule
from weightloom.rules.document import Layout, RuleItem
from weightloom.rules.examples import example
from weightloom.rules.lint_ops import ops_complaint
from weightloom.rules.lint_patterns import pattern_complaints
from weightloom.rules.problems import Mark

Complaint = tuple[Mark, str, str]


def layout_complaints(layout: Layout) -> Iterator[Complaint]:
    """Yield (place, code, message) for each thing that is wrong in a layout."""
    for item in layout.items:
        yield from _of_one(item)
    for earlier, later in combinations(layout.items, 2):
        if not _exclusive(earlier.rule, later.rule):
            yield from _of_two(earlier, later)


def source_texts(rule: Rule) -> tuple[str, ...]:
    """Give the source patterns of a rule as they were written."""
    if isinstance(rule, Tie):
        return (rule.parameter,)
    if isinstance(rule, DropLayers):
        return (rule.layers,)
    if isinstance(rule, PrefixChange):
        return ()
    return rule.source_patterns if isinstance(rule, Renaming | Drop | KeepDtype | Absent) else ()


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


def _exclusive(one: Rule, other: Rule) -> bool:
    """Two different conditions are taken to exclude each other."""
    return one.when is not None and other.when is not None and one.when != other.when


def _of_two(earlier: RuleItem, later: RuleItem) -> Iterator[Complaint]:
    one, other = earlier.rule, later.rule
    if isinstance(one, WeightConverter) and isinstance(other, WeightConverter):
        yield from _both_claim(one, later, other)
    elif type(one) is type(other):
        yield from _shadowed(one, later, other)
    if isinstance(one, WeightConverter) and _renames(other):
        yield from _rename_and_converter(other, later, one)
        yield from _rename_feeds(other, later, one)
    elif isinstance(other, WeightConverter) and _renames(one):
        yield from _rename_and_converter(one, earlier, other)


def _renames(rule: Rule) -> bool:
    return isinstance(rule, WeightRenaming)


def _shadowed(one: Rule, later: RuleItem, other: Rule) -> Iterator[Complaint]:
    if isinstance(one, Tie) and isinstance(other, Tie) and one.source != other.source:
        return
    if one.when is not None and one.when != other.when:
        return
    for text in source_texts(other):
        if text in source_texts(one):
            where = f"line {one.place.line}" if one.place else "an earlier rule"
            yield later.mark_of(text), "WL104", f"pattern '{text}' never gets a name: {where} has the same pattern"


def _both_claim(one: WeightConverter, later: RuleItem, other: WeightConverter) -> Iterator[Complaint]:
    for text, source in zip(other.source_patterns, other.sources, strict=True):
        if text in one.source_patterns or _matches(one, example(source)) or _is_claimed(source.text, one, other):
            where = f"line {one.place.line}" if one.place else "an earlier one"
            yield (
                later.mark_of(text),
                "WL105",
                f"the converter '{other.summary()}' and the one in {where} claim one name, which is an error",
            )
            return


def _is_claimed(text: str, one: WeightConverter, other: WeightConverter) -> bool:
    """The other way round: a name of the earlier converter that this pattern matches."""
    source = other.sources[other.source_patterns.index(text)]
    names = [example(each) for each in one.sources]
    return any(source.search(name) is not None for name in names if name is not None)


def _matches(rule: WeightConverter, name: str | None) -> bool:
    return name is not None and any(source.search(name) is not None for source in rule.sources)


def _written(rule: WeightRenaming) -> list[str]:
    """What a rename writes for a name that each of its patterns matches."""
    names = [example(source) for source in rule.sources]
    return [after for name in names if name is not None and (after := rule.rewrite(name)) is not None]


def _made(converter: WeightConverter) -> list[str]:
    """What a converter makes of a name that its first pattern matches."""
    name = example(converter.sources[0])
    span = None if name is None else converter.sources[0].search(name)
    if span is None:
        return []
    stars = (*span.stars, "7", "7")
    return [template.render(dict(span.captures), stars) for template in converter.templates]


def _whole(text: str) -> str:
    """A pattern for a text that does not begin or end within a word."""
    start = r"(?<!\w)" if text[0].isalnum() else ""
    return start + re.escape(text) + r"(?!\w)"


def _rename_and_converter(rename: Rule, item: RuleItem, converter: WeightConverter) -> Iterator[Complaint]:
    assert isinstance(rename, WeightRenaming)
    made = [re.compile(_whole(text)) for text in _made(converter) if text.strip(".")]
    if any(pattern.search(name) for pattern in made for name in _written(rename)):
        yield (
            item.at,
            "WL106",
            f"the rename '{rename.summary()}' writes what the converter '{converter.summary()}' makes: two "
            "sources for one parameter",
        )


def _rename_feeds(rename: Rule, item: RuleItem, converter: WeightConverter) -> Iterator[Complaint]:
    assert isinstance(rename, WeightRenaming)
    if any(_matches(converter, name) for name in _written(rename)):
        yield (
            item.at,
            "WL107",
            f"the rename '{rename.summary()}' stands behind the converter that takes what it writes; all renames act "
            "before all converters, so write it first",
        )
