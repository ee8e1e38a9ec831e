"""Combining: what is stacked, joined or cut, the likeliest first."""

from __future__ import annotations

from collections.abc import Sequence

from weightloom.rules.proposing.cutting import cut
from weightloom.rules.proposing.joining import joined_or_stacked
from weightloom.rules.proposing.likeness import Likeness
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.pairing import ALIKE, NEAR, UNLIKE
from weightloom.rules.proposing.templates import Template
from weightloom.rules.proposing.together import Found, count_of

LEAST = 0.3


def combined(
    sources: Sequence[Template], targets: Sequence[Template], likeness: Likeness, least: float = LEAST
) -> tuple[Link, ...]:
    """Find what is stacked, joined or cut; the likeliest first, each source and target at most once."""
    made = (*joined_or_stacked(sources, targets, likeness, least), *cut(sources, targets, likeness, least))
    found = sorted(made, key=lambda each: (-each.score, len(each.link.sources)))
    used: set[tuple[bool, Template]] = set()
    links: list[Link] = []
    for each in found:
        if not each.ends & used:
            used |= each.ends
            links.append(_doubted(each, found))
    return tuple(links)


def _doubted(chosen: Found, found: Sequence[Found]) -> Link:
    """Give a link with the doubt that its name or others that would do nearly as well leave."""
    rivals = (each for each in found if each.ends & chosen.ends and each.ends != chosen.ends)
    near = [each for each in rivals if each.score > chosen.score - NEAR]
    link = chosen.link
    if near:
        link = link.doubting(f"it may as well be {count_of(near[0].link.sources)} as {count_of(near[0].link.targets)}")
    return link.doubting(UNLIKE) if chosen.score < ALIKE else link
