"""Stacking: templates of which one number becomes an axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weightloom.rules.proposing.templates import STAR, Index, Shape, Template


@dataclass(frozen=True)
class Stack(Template):
    """A template of which one number became an axis; it keeps the one that it was."""

    original: Template | None = None


def unstacked(template: Template) -> Template:
    """Give the template that a stack was made of; any other as it is."""
    return template.original or template if isinstance(template, Stack) else template


def stacks(sources: Sequence[Template]) -> Iterator[tuple[int, list[Template]]]:
    """Yield the templates as they are (-1), and with each of their numbers, the last first, as an axis in front."""
    yield -1, list(sources)
    for place in reversed(range(max((source.stars for source in sources), default=0))):
        stacked = (_stacked(source, place) for source in sources if place < source.stars)
        yield place, [each for each in stacked if each is not None]


def _stacked(source: Template, place: int) -> Stack | None:
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
    return Stack((*source.parts[:star], *source.parts[star + 1 :]), shapes, source)
