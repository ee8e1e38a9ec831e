"""Matching: every template on disk with the parameters that it makes, from the surest to the weakest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weightloom.rules.proposing.combining import combined
from weightloom.rules.proposing.learning import learnt
from weightloom.rules.proposing.likeness import Likeness
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.pairing import ALIKE, WEAK, only_ones, paired
from weightloom.rules.proposing.templates import Template

_ROUNDS = 3
# Of what is put together when all else has failed, the module around it alone need have a word in common.
_FAINT = 0.05
_GUESSED = "found by its shape and by what other guesses say of its name"


def matched(sources: Sequence[Template], targets: Sequence[Template]) -> tuple[Link, ...]:
    """Match one to one by name, learning words on the way; then what is put together or cut; then what is left."""
    same = _same(sources, targets)
    others = _rest(sources, same, True), _rest(targets, same, False)
    named: tuple[Link, ...] = ()
    for _ in range(_ROUNDS):
        likeness = Likeness(sources, targets, learnt((*same, *named)))
        named = paired(*others, likeness, ALIKE)
    likeness = Likeness(sources, targets, learnt((*same, *named)))
    joined = combined(_rest(others[0], named, True), _rest(others[1], named, False), likeness)
    found = (*same, *named, *joined)
    found = (*found, *_guessed(sources, targets, found))
    return (*found, *paired(_rest(sources, found, True), _rest(targets, found, False), likeness, WEAK))


def _guessed(sources: Sequence[Template], targets: Sequence[Template], found: Sequence[Link]) -> tuple[Link, ...]:
    """Match what has one place alone by its shape, and then what that says of other names; all of it in doubt."""
    guesses: tuple[Link, ...] = ()
    while True:
        so_far = (*found, *guesses)
        left = _rest(sources, so_far, True), _rest(targets, so_far, False)
        likeness = Likeness(sources, targets, learnt(so_far, doubtful=True))
        more = paired(*left, likeness, ALIKE) or only_ones(*left, likeness)
        more = more or tuple(link for link in combined(*left, likeness, _FAINT) if _complete(link, *left))
        if not more:
            return guesses
        guesses = (*guesses, *(link.doubting(_GUESSED) for link in more))


def _complete(link: Link, sources: Sequence[Template], targets: Sequence[Template]) -> bool:
    """Say whether a link takes all that is left of the modules that it is about."""
    return _all_of(link.sources, sources) and _all_of(link.targets, targets)


def _all_of(taken: Sequence[Template], left: Sequence[Template]) -> bool:
    families = {each.family for each in taken}
    return set(taken) == {each for each in left if each.family in families}


def _same(sources: Iterable[Template], targets: Iterable[Template]) -> tuple[Link, ...]:
    """Link what has name, shape and indices alike on both sides."""
    wanted = {target.parts: target for target in targets}
    pairs = ((source, wanted[source.parts]) for source in sources if source.parts in wanted)
    return tuple(
        Link((source,), (target,), evidence="the same name and shape")
        for source, target in pairs
        if all(source.shapes.get(index) == shape for index, shape in target.shapes.items())
    )


def _rest(templates: Iterable[Template], links: Iterable[Link], of_sources: bool) -> list[Template]:
    taken = {each for link in links for each in (link.sources if of_sources else link.targets)}
    return [template for template in templates if template not in taken]
