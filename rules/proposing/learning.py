"""Learning: what parts of names on disk stand for, from pairs that are certain: no table need know the words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher

from weightloom.rules.proposing.likeness import Learnt
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.templates import STAR

_AGREE = 0.6


def learnt(links: Iterable[Link], doubtful: bool = False) -> Learnt:
    """Give for parts of sources the parts of targets that stand in their place in most pairs.

    Pairs in doubt say nothing, unless `doubtful` guesses are asked for.
    """
    votes: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for link in links:
        if len(link.sources) == len(link.targets) == 1 and (doubtful or not link.doubts):
            for one, other in _exchanged(link.sources[0].module, link.targets[0].module):
                votes[one][other] += 1
    found = {part: count.most_common(1)[0] for part, count in votes.items()}
    return {part: parts for part, (parts, most) in found.items() if most >= _AGREE * votes[part].total()}


def _exchanged(before: tuple[str, ...], after: tuple[str, ...]) -> Iterable[tuple[str, tuple[str, ...]]]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, start, stop, first, last in matcher.get_opcodes():
        if tag == "equal":
            yield from ((part, (part,)) for part in before[start:stop] if part != STAR)
        elif tag == "replace" and stop - start == last - first:
            yield from ((one, (other,)) for one, other in zip(before[start:stop], after[first:last], strict=True))
        elif tag == "replace" and stop - start == 1:
            yield before[start], after[first:last]
