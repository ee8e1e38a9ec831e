"""Converting: links with ops as converters, on the names that the renames leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weightloom.engine.mapping.patterns import compile_source
from weightloom.rules.proposing import spelling
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.proposal import ProposedRule
from weightloom.rules.proposing.renaming import renamed
from weightloom.rules.proposing.templates import STAR, Template

Parts = tuple[str, ...]


def converters_of(
    links: Sequence[Link], renames: Sequence[ProposedRule], names: Sequence[Template]
) -> Iterator[ProposedRule]:
    """Give a converter for each link; `names` are all templates on disk, none of which may be taken by mistake."""
    after = dict(zip([each.parts for each in names], renamed(renames, names), strict=True))
    for link in links:
        sources = [after[source.parts] for source in link.sources]
        targets = [target.parts for target in link.targets]
        others = [parts for parts in after.values() if parts not in sources]
        start = _start(sources, targets, others)
        yield ProposedRule({"convert": _item(link, sources, targets, start)}, (link,), (link,))


def _start(sources: Sequence[Parts], targets: Sequence[Parts], others: Sequence[Parts]) -> int:
    """Give from which part on the names are written: as few as tell them from all others."""
    least = min(len(parts) for parts in (*sources, *targets))
    common = next((at for at in range(least) if len({parts[at] for parts in (*sources, *targets)}) > 1), least)
    ends = [max(0, len(parts) - 2) for parts in (*sources, *targets)]
    for start in range(min(common, *ends), 0, -1):
        patterns = [_pattern(parts, start, -1) for parts in sources]
        if not any(_matches(pattern, other) for pattern in patterns for other in others):
            return start
    return 0


def _matches(pattern: str, parts: Parts) -> bool:
    name = ".".join("7" if part == STAR else part for part in parts)
    return compile_source(pattern, {}, anchored=False).search(name) is not None


def _pattern(parts: Parts, start: int, collected: int) -> str:
    return spelling.source(parts[start:], first=start == 0, last=True, collected=collected)


def _item(link: Link, sources: Sequence[Parts], targets: Sequence[Parts], start: int) -> dict[str, Any]:
    patterns = [_pattern(parts, start, _collected(link, parts, start)) for parts in sources]
    wanted = [spelling.target(parts[start:], first=start == 0, last=True) for parts in targets]
    ops = [{op.name: dict(op.arguments)} for op in link.ops]
    return {"from": _one_or_all(patterns), "to": _one_or_all(wanted), "ops": ops}


def _collected(link: Link, parts: Parts, start: int) -> int:
    """Give the place, among the parts written, of the number that becomes an axis."""
    if link.collected < 0:
        return -1
    stars = [place for place, part in enumerate(parts) if part == STAR]
    return stars[link.collected] - start


def _one_or_all(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else texts
