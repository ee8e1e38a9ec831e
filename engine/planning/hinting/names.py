"""Missing names beside the unexpected names that are nearest to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice

from weightloom.engine.mapping.shapes import shape_texts
from weightloom.engine.planning.report import LoadReport

_SHOWN = 3
# To compare two shapes of name takes some 10 µs.
_COMPARED = 200
_NEAR = 0.7


def near_names(report: LoadReport) -> Iterator[str]:
    """Say, for the first missing shapes of name, which unexpected one is nearest, if any is near."""
    yield from islice(_pairs(sorted(shape_texts(report.missing)), sorted(shape_texts(report.unexpected))), _SHOWN)


def _pairs(missing: Sequence[str], unexpected: Sequence[str]) -> Iterator[str]:
    for name in missing[:_COMPARED]:
        near = get_close_matches(name, unexpected[:_COMPARED], n=1)
        if near and _is_near(name.split("."), near[0].split(".")):
            yield f"{name} is missing and {near[0]} unexpected: a `rename` rule, if they are the same"


def _is_near(one: Sequence[str], other: Sequence[str]) -> bool:
    """Compare what differs, for the names of one model have most parts in common."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return SequenceMatcher(None, ".".join(one), ".".join(other)).ratio() >= _NEAR
