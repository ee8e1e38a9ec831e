"""Pairing: templates of which one makes one, by indices, shape and name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightloom.rules.proposing.assigning import assigned
from weightloom.rules.proposing.likeness import Likeness
from weightloom.rules.proposing.links import Link, OpCall
from weightloom.rules.proposing.relaying import Pairs, relayings
from weightloom.rules.proposing.templates import Template

# Names that are less alike than this are not paired for their names; scores that are nearer than this are a doubt.
ALIKE = 0.45
WEAK = 0.12
NEAR = 0.12
# What a tensor that has to be turned is worth less than one that fits as it is.
_TURNED = 0.08
_SHOWN = 3
UNLIKE = "its place and shape fit, its name has little in common with the parameter's"


@dataclass(frozen=True)
class Candidate:
    """A source that could be a target: how alike the names are, what its shape needs, whether its own name says it."""

    score: float
    chains: tuple[tuple[OpCall, ...], ...]
    named: bool


def paired(
    sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness, least: float
) -> tuple[Link, ...]:
    """Pair what fits, names at least so alike; each source and target at most once."""
    found = _candidates(sources, targets, likeness)
    links: list[Link] = []
    for group in _components(found):
        rows = [source for source in sources if source in group]
        columns = [target for target in targets if target in group]
        scores = [[_score(found, row, column, least) for column in columns] for row in rows]
        links += _links(rows, columns, scores, found)
    return tuple(links)


def only_ones(sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness) -> tuple[Link, ...]:
    """Pair those of which each could be nothing but the other."""
    found = _candidates(sources, targets, likeness)
    alone = [pair for pair in found if all(pair == other or not set(pair) & set(other) for other in found)]
    return tuple(_link(*pair, found[pair], ()) for pair in alone)


def could_be(source: Template, targets: Sequence[Template]) -> tuple[Template, ...]:
    """Give the targets that a source fits by its shape and its numbers alone."""
    fitting = (target for target in targets if target.stars == source.stars and target.indices <= source.indices)
    return tuple(target for target in fitting if next(relayings(shape_pairs(source, target)), None) is not None)


def _candidates(
    sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness
) -> dict[tuple[Template, Template], Candidate]:
    by_stars: dict[int, list[Template]] = defaultdict(list)
    for source in sources:
        by_stars[source.stars].append(source)
    found: dict[tuple[Template, Template], Candidate] = {}
    for target in targets:
        for source in by_stars[target.stars]:
            if not target.indices <= source.indices or (source.end and target.end and source.end != target.end):
                continue
            chains = tuple(relayings(shape_pairs(source, target)))
            if chains:
                exact = 0.0 if source.indices == target.indices else _TURNED
                score = likeness.of(source, target) - (_TURNED if chains[0] else 0.0) - exact
                found[source, target] = Candidate(score, chains, likeness.own(source, target))
    return found


def shape_pairs(source: Template, target: Template) -> Pairs:
    """Give each pair of shapes that there is at one index."""
    return frozenset((source.shapes[index], shape) for index, shape in target.shapes.items())


def _components(found: dict[tuple[Template, Template], Candidate]) -> Iterator[set[Template]]:
    """Part the templates into sets of which none could be paired with one of another."""
    beside: dict[tuple[str, Template], set[tuple[str, Template]]] = defaultdict(set)
    for source, target in found:
        beside["s", source].add(("t", target))
        beside["t", target].add(("s", source))
    left = dict.fromkeys(beside)
    while left:
        reached, frontier = set[tuple[str, Template]](), [next(iter(left))]
        while frontier:
            node = frontier.pop()
            if node not in reached:
                reached.add(node)
                frontier += beside[node]
        for node in reached:
            left.pop(node, None)
        yield {template for _, template in reached}


def _score(
    found: dict[tuple[Template, Template], Candidate], source: Template, target: Template, least: float
) -> float:
    candidate = found.get((source, target))
    return candidate.score if candidate is not None and candidate.score >= least else 0.0


def _links(
    rows: Sequence[Template],
    columns: Sequence[Template],
    scores: Sequence[Sequence[float]],
    found: Mapping[tuple[Template, Template], Candidate],
) -> Iterator[Link]:
    taken = assigned(scores)
    for row, column in enumerate(taken):
        if column >= 0:
            near = _near(row, taken, scores)
            candidate = found[rows[row], columns[column]]
            yield _link(rows[row], columns[column], candidate, [columns[other].text for other in near])


def _link(source: Template, target: Template, candidate: Candidate, near: Sequence[str]) -> Link:
    chain, *others = candidate.chains
    doubts: list[str] = []
    if near and source.parts != target.parts:
        doubts.append(f"it may as well be {' or '.join(near[:_SHOWN])}")
    if candidate.score < ALIKE or not candidate.named:
        doubts.append(UNLIKE)
    if others:
        doubts.append(f"its axes could be moved by {' or '.join(map(shown_chain, others))} as well")
    shape = "the same shape" if not chain else f"{list(source.example)} moved to {list(target.example)}"
    evidence = "the same name" if source.parts == target.parts else f"likeness of names {candidate.score:.2f}"
    return Link((source,), (target,), chain, f"{evidence}, {shape}", tuple(doubts))


def _near(row: int, taken: Sequence[int], scores: Sequence[Sequence[float]]) -> list[int]:
    """Give the columns that would do better for a row, or nearly as well were the row that has one given this row's.

    Where another row would do better for this row's own column, that row's is among them.
    """
    own, column = scores[row][taken[row]], taken[row]
    holders = {each: number for number, each in enumerate(taken) if each >= 0}
    near: list[int] = []
    for other, score in enumerate(scores[row]):
        holder = holders.get(other)
        change = 0.0 if holder is None else scores[holder][column] - scores[holder][other]
        if other != column and score > 0 and (score > own or score + change > own - NEAR):
            near.append(other)
    better = (taken[each] for each in range(len(scores)) if each != row and scores[each][column] > own)
    return near + [each for each in better if each >= 0 and each not in near]


def shown_chain(chain: Sequence[OpCall]) -> str:
    """Write ops as a person would say them."""
    return ", then ".join(f"{op.name} {dict(op.arguments) or ''}".strip() for op in chain) or "nothing"
