"""What can be wrong between two rules of one layout; each is tried on the few that an index names, not on all."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from weightloom.engine.mapping.claims import Tie
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Rule
from weightloom.rules.document import RuleItem
from weightloom.rules.linting.examples import example
from weightloom.rules.linting.index import PatternIndex
from weightloom.rules.problems import Mark
from weightloom.rules.source_texts import source_texts

Complaint = tuple[Mark, str, str]
_Converters = list[tuple[int, RuleItem, WeightConverter]]
_Renames = list[tuple[int, RuleItem, WeightRenaming]]


def rivals(items: Sequence[RuleItem], own: int = 0) -> Iterator[Complaint]:
    """Yield what is wrong between rules: one pattern twice, one name claimed or made twice, a rename too late.

    Items before number `own` are another file's: a complaint is about those from it on.
    """
    converters = [(n, i, i.rule) for n, i in enumerate(items) if isinstance(i.rule, WeightConverter)]
    renames = [(n, i, i.rule) for n, i in enumerate(items) if isinstance(i.rule, WeightRenaming)]
    yield from _same_patterns(items, own)
    yield from _both_claim(converters, own)
    yield from _rename_and_converter(renames, converters, own)
    yield from _rename_feeds(renames, converters, own)


def exclusive(one: Rule, other: Rule) -> bool:
    """Two different conditions are taken to exclude each other."""
    return one.when is not None and other.when is not None and one.when != other.when


def line_of(rule: Rule) -> str:
    """Say where an earlier rule stands."""
    return f"{Path(rule.place.file).name}:{rule.place.line}" if rule.place else "an earlier rule"


def _same_patterns(items: Sequence[RuleItem], own: int) -> Iterator[Complaint]:
    seen: dict[tuple[type[Rule], str, str], list[Rule]] = defaultdict(list)
    for number, item in enumerate(items):
        rule = item.rule
        if isinstance(rule, WeightConverter):
            continue
        beside = rule.source if isinstance(rule, Tie) else ""
        for text in dict.fromkeys(source_texts(rule)):
            earlier = seen[type(rule), text, beside]
            first = next((one for one in earlier if one.when in (None, rule.when)), None)
            if first is not None and number >= own:
                said = f"pattern '{text}' never gets a name: {line_of(first)} has the same pattern"
                yield item.mark_of(text), "WL104", said
            earlier.append(rule)


def _both_claim(converters: _Converters, own: int) -> Iterator[Complaint]:
    """Two converters of which one matches an example of what the other matches; each with the first of them."""
    rivals: dict[int, dict[int, str]] = defaultdict(dict)
    for later, earlier, text in _claims(converters):
        rivals[later].setdefault(earlier, text)
    for later, found in sorted(rivals.items()):
        number, item, rule = converters[later]
        others = ((converters[earlier][2], text) for earlier, text in sorted(found.items()))
        first = next(((one, text) for one, text in others if not exclusive(one, rule)), None)
        if first is not None and number >= own:
            where = line_of(first[0])
            said = f"the converter '{rule.summary()}' and the one in {where} claim one name, which is an error"
            yield item.mark_of(first[1]), "WL105", said


def _claims(converters: _Converters) -> Iterator[tuple[int, int, str]]:
    """Yield (later, earlier, pattern of the later one) for converters that share a name or a pattern."""
    sources = [
        (place, text, source)
        for place, (_, _, rule) in enumerate(converters)
        for text, source in zip(rule.source_patterns, rule.sources, strict=True)
    ]
    index = PatternIndex([text for _, text, _ in sources])
    places: dict[str, list[int]] = defaultdict(list)
    for place, text, source in sources:
        yield from ((place, other, text) for other in places[text] if other != place)
        places[text].append(place)
        name = example(source)
        for number in [] if name is None else index.candidates(name):
            other, pattern, another = sources[number]
            if other != place and name is not None and another.search(name) is not None:
                yield (place, other, text) if place > other else (other, place, pattern)


def _rename_and_converter(renames: _Renames, converters: _Converters, own: int) -> Iterator[Complaint]:
    made = [(place, text) for place, (_, _, rule) in enumerate(converters) for text in _made(rule) if text.strip(".")]
    patterns = [re.compile(_whole(text)) for _, text in made]
    index = PatternIndex([re.escape(text) for _, text in made])
    for number, item, rename in renames:
        written = [(name, hit) for name in _written(rename) for hit in index.candidates(name)]
        makers = dict.fromkeys(made[hit][0] for name, hit in written if patterns[hit].search(name))
        for other, its, converter in (converters[place] for place in makers):
            if max(number, other) >= own and not exclusive(converter, rename):
                said = (
                    f"the rename '{rename.summary()}' writes what the converter '{converter.summary()}' makes: two "
                    "sources for one parameter"
                )
                yield (item if number >= own else its).at, "WL106", said


def _rename_feeds(renames: _Renames, converters: _Converters, own: int) -> Iterator[Complaint]:
    sources = [(number, rule, source) for number, _, rule in converters for source in rule.sources]
    index = PatternIndex([source.text for _, _, source in sources])
    for place, item, rename in renames:
        tried = [(name, sources[number]) for name in _written(rename) for number in index.candidates(name)]
        fed = (rule for name, (number, rule, source) in tried if number < place and source.search(name))
        if place >= own and any(not exclusive(rule, rename) for rule in fed):
            said = (
                f"the rename '{rename.summary()}' stands behind the converter that takes what it writes; all renames "
                "act before all converters, so write it first"
            )
            yield item.at, "WL107", said


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
