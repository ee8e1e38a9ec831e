"""Cutting: one template that several, side by side in one module, are cut from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weightloom.rules.proposing.laying import joined
from weightloom.rules.proposing.likeness import Likeness
from weightloom.rules.proposing.links import Link, OpCall
from weightloom.rules.proposing.templates import Template
from weightloom.rules.proposing.together import Found, count_of, same_end, siblings
from weightloom.rules.proposing.words import in_order

_GROUPED = "the rows may also be grouped by head, or in another order: shapes do not tell"


def cut(sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness, least: float) -> Iterator[Found]:
    """Yield the sources that several targets are cut from, names at least so alike."""
    for source in sources:
        fitting = [each for each in targets if each.indices <= source.indices and same_end(source, each)]
        for chosen in siblings(fitting, 2):
            score = likeness.of_many((source,), chosen)
            if score >= least and len({each.indices for each in chosen}) == 1:
                yield from _cuts(source, chosen, likeness, score)


def _cuts(source: Template, chosen: Sequence[Template], likeness: Likeness, score: float) -> Iterator[Found]:
    ordered = in_order(chosen, likeness.words((source,), True), lambda each: likeness.apart(each, chosen, False))
    whole = {index: source.shapes[index] for index in ordered[0].shapes}
    for laid, ops in joined([each.shapes for each in ordered], whole):
        if laid != whole:
            continue
        arguments = ops[0].arguments
        call = OpCall("Split", {**arguments}) if "sizes" in arguments else OpCall("Chunk", {"dim": arguments["dim"]})
        evidence = f"likeness of names {score:.2f}, {list(source.example)} is as long as {count_of(ordered)} together"
        yield Found(score, Link((source,), tuple(ordered), (call,), evidence, (_GROUPED,)))
