"""Joining and parting: several templates that together make one, or one that is cut into several; and stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from weightloom.rules.proposing.likeness import Likeness
from weightloom.rules.proposing.links import Link, OpCall
from weightloom.rules.proposing.relaying import relayings
from weightloom.rules.proposing.templates import STAR, Index, Shape, Template
from weightloom.rules.proposing.words import in_order

_MOST = 4
_LEAST = 0.3


@dataclass(frozen=True)
class Found:
    """A link, and how alike the names are."""

    score: float
    link: Link


def combined(sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness) -> tuple[Link, ...]:
    """Find what is stacked, joined or cut; the likeliest first, each source and target at most once."""
    found = [*_stacked_or_joined(sources, targets, likeness), *_cut(sources, targets, likeness)]
    used: set[tuple[bool, Template]] = set()
    links: list[Link] = []
    for each in sorted(found, key=lambda each: (-each.score, len(each.link.sources))):
        ends = {*((True, source) for source in each.link.sources), *((False, target) for target in each.link.targets)}
        if not ends & used:
            used |= ends
            links.append(each.link)
    return tuple(links)


def _stacked_or_joined(sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness) -> Iterator[Found]:
    for place, stacks in _stacks(sources):
        for target in targets:
            fitting = [
                stack
                for stack in stacks
                if target.indices <= stack.indices and _same_end(stack, target) and likeness.lists_agree(stack, target)
            ]
            yield from _made(fitting, place, target, likeness)


def _made(stacks: Sequence[Template], place: int, target: Template, likeness: Likeness) -> Iterator[Found]:
    first = [] if place < 0 else [OpCall("MergeModulelist", {"dim": 0})]
    for count in range(1 if place >= 0 else 2, _MOST + 1):
        for family in _families(stacks).values():
            for chosen in combinations(family, count):
                score = likeness.of_many(chosen, (target,)) - 0.01 * count
                if score < _LEAST:
                    continue
                yield from _chains(chosen, place, target, first, score, likeness)


def _chains(
    chosen: Sequence[Template], place: int, target: Template, first: list[OpCall], score: float, likeness: Likeness
) -> Iterator[Found]:
    ordered = in_order(chosen, likeness.words((target,), False), lambda each: likeness.apart(each, chosen, True))
    for joined, ops in _joined([each.shapes for each in ordered], target.shapes):
        pairs = frozenset((joined[index], shape) for index, shape in target.shapes.items())
        for chain in relayings(pairs):
            calls = (*first, *ops, *chain)
            doubts = _doubts(len(ordered), joined_dims=ops)
            originals = tuple(_unstacked(each, place) for each in ordered)
            how = [*(["stacked by number"] if place >= 0 else []), *(["put together"] if ops else [])]
            parts = " and ".join(str(list(each.example)) for each in originals)
            evidence = f"likeness of names {score:.2f}, {parts} {' and '.join(how)} make {list(target.example)}"
            link = Link(originals, (target,), calls, evidence, doubts, place)
            yield Found(score - 0.05 * len(chain), link)
            return


def _doubts(count: int, joined_dims: Sequence[OpCall]) -> tuple[str, ...]:
    if not joined_dims or count < 2:
        return ()
    return ("the parts may also lie row by row in turn (Interleave), or in another order: shapes do not tell",)


Shapes = Mapping[Index, Shape]


def _joined(parts: Sequence[Shapes], target: Shapes) -> Iterator[tuple[Shapes, tuple[OpCall, ...]]]:
    """Yield what the parts make, laid one behind the other along each axis that could give the target."""
    if len(parts) == 1:
        yield parts[0], ()
        return
    for dim in range(len(next(iter(parts[0].values())))):
        made = {index: _laid([part[index] for part in parts], dim) for index in target}
        whole = {index: shape for index, shape in made.items() if shape is not None}
        if len(whole) == len(target) and all(sorted(shape) == sorted(target[i]) for i, shape in whole.items()):
            sizes = {part[index][dim] for part in parts for index in target}
            lengths = [next(iter({part[index][dim] for index in target})) for part in parts]
            more = {} if len(sizes) == 1 else {"sizes": lengths}
            yield whole, (OpCall("Concatenate", {"dim": dim, **more}),)


def _laid(shapes: Sequence[Shape], dim: int) -> Shape | None:
    first = shapes[0]
    rest = {(*shape[:dim], *shape[dim + 1 :]) for shape in shapes}
    if len(rest) != 1 or any(len(shape) != len(first) for shape in shapes):
        return None
    return (*first[:dim], sum(shape[dim] for shape in shapes), *first[dim + 1 :])


def _same_end(stack: Template, target: Template) -> bool:
    return not (stack.end and target.end) or stack.end == target.end


def _families(templates: Sequence[Template]) -> dict[object, list[Template]]:
    """Group templates that differ in the last part of the module alone, or in the one before it alone."""
    found: dict[object, list[Template]] = defaultdict(list)
    for template in templates:
        module = template.module
        found[(module[:-1], template.end)].append(template)
        if len(module) > 1 and STAR not in module[-2:]:
            found[(module[:-2], module[-1], template.end)].append(template)
    return found


@dataclass(frozen=True)
class _Stack(Template):
    """A template of which one number became an axis; it keeps the one that it was."""

    original: Template | None = None


def _unstacked(template: Template, place: int) -> Template:
    assert place < 0 or isinstance(template, _Stack)
    return template.original or template if isinstance(template, _Stack) else template


def _stacks(sources: Sequence[Template]) -> Iterator[tuple[int, list[Template]]]:
    """Give the templates as they are (-1), and with each of their numbers, the last first, as an axis in front."""
    yield -1, list(sources)
    for place in reversed(range(max((source.stars for source in sources), default=0))):
        stacked = (_stacked(source, place) for source in sources if place < source.stars)
        yield place, [each for each in stacked if each is not None]


def _stacked(source: Template, place: int) -> _Stack | None:
    """Make the number at a place an axis; None where the tensors differ in shape or are not as many everywhere."""
    below: dict[Index, dict[int, Shape]] = defaultdict(dict)
    for index, shape in source.shapes.items():
        below[(*index[:place], *index[place + 1 :])][index[place]] = shape
    counts = {len(each) for each in below.values()}
    whole = all(set(each) == set(range(len(each))) and len(set(each.values())) == 1 for each in below.values())
    if not whole or len(counts) != 1:
        return None
    shapes = {index: (len(each), *next(iter(each.values()))) for index, each in below.items()}
    star = [number for number, part in enumerate(source.parts) if part == STAR][place]
    return _Stack((*source.parts[:star], *source.parts[star + 1 :]), shapes, source)


def _cut(sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness) -> Iterator[Found]:
    """Find sources that several targets, side by side in one module, are cut from."""
    for source in sources:
        for family in _families(targets).values():
            fitting = [each for each in family if each.indices <= source.indices and _same_end(source, each)]
            for count in range(2, _MOST + 1):
                for chosen in combinations(fitting, count):
                    if len({each.indices for each in chosen}) == 1:
                        yield from _cuts(source, chosen, likeness)


def _cuts(source: Template, chosen: Sequence[Template], likeness: Likeness) -> Iterator[Found]:
    score = likeness.of_many((source,), chosen)
    if score < _LEAST:
        return
    ordered = in_order(chosen, likeness.words((source,), True), lambda each: likeness.apart(each, chosen, False))
    whole = {index: source.shapes[index] for index in ordered[0].shapes}
    for joined, ops in _joined([each.shapes for each in ordered], whole):
        if joined != whole:
            continue
        arguments = ops[0].arguments
        call = OpCall("Split", {**arguments}) if "sizes" in arguments else OpCall("Chunk", {"dim": arguments["dim"]})
        evidence = f"likeness of names {score:.2f}, {list(source.example)} is as long as {count_of(ordered)} together"
        doubt = "the rows may also be grouped by head, or in another order: shapes do not tell"
        link = Link((source,), tuple(ordered), (call,), evidence, (doubt,))
        yield Found(score, replace(link))


def count_of(templates: Sequence[Template]) -> str:
    """Show the last parts of some names."""
    return ", ".join(template.module[-1] for template in templates)
