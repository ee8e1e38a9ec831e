"""Joining: several templates that are stacked or laid behind each other to make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weightloom.rules.proposing.laying import ways
from weightloom.rules.proposing.likeness import Likeness
from weightloom.rules.proposing.links import Link, OpCall
from weightloom.rules.proposing.relaying import relayings
from weightloom.rules.proposing.stacking import stacks, unstacked
from weightloom.rules.proposing.templates import Template
from weightloom.rules.proposing.together import Found, same_end, siblings
from weightloom.rules.proposing.words import in_order

_IN_TURN = "the parts may also lie row by row in turn (Interleave), or in another order: shapes do not tell"


def joined_or_stacked(
    sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness, least: float
) -> Iterator[Found]:
    """Yield what makes each target when it is stacked, joined or both, names at least so alike."""
    for place, stacked in stacks(sources):
        for target in targets:
            fitting = [each for each in stacked if _fits(each, target, likeness)]
            for chosen in siblings(fitting, 1 if place >= 0 else 2):
                score = likeness.of_many(chosen, (target,)) - 0.01 * len(chosen)
                if score >= least:
                    yield from _made(chosen, place, target, score, likeness)


def _fits(stack: Template, target: Template, likeness: Likeness) -> bool:
    return target.indices <= stack.indices and same_end(stack, target) and likeness.lists_agree(stack, target)


def _made(
    chosen: Sequence[Template], place: int, target: Template, score: float, likeness: Likeness
) -> Iterator[Found]:
    first = [] if place < 0 else [OpCall("MergeModulelist", {"dim": 0})]
    ordered = in_order(chosen, likeness.words((target,), False), lambda each: likeness.apart(each, chosen, True))
    originals = tuple(map(unstacked, ordered))
    for laid, ops in ways(ordered, target.shapes):
        pairs = frozenset((laid[index], shape) for index, shape in target.shapes.items())
        for chain in relayings(pairs):
            how = [*(["stacked by number"] if place >= 0 else []), *(["put together"] if ops else [])]
            parts = " and ".join(str(list(each.example)) for each in originals)
            evidence = f"likeness of names {score:.2f}, {parts} {' and '.join(how)} make {list(target.example)}"
            doubts = (_IN_TURN,) if ops else ()
            link = Link(originals, (target,), (*first, *ops, *chain), evidence, doubts, place)
            yield Found(score - 0.05 * len(chain), link)
            return
