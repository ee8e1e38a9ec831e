"""Laying parts behind each other: along which axis, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weightloom.rules.proposing.links import OpCall
from weightloom.rules.proposing.templates import Index, Shape, Template

Shapes = Mapping[Index, Shape]
Laid = tuple[Shapes, tuple[OpCall, ...]]


def ways(parts: Sequence[Template], target: Shapes) -> Iterator[Laid]:
    """Yield what parts make when they are laid behind each other: as they are, or with one of them turned first."""
    shapes = [each.shapes for each in parts]
    yield from joined(shapes, target)
    if len(parts) < 2 or any(len(each.example) != 3 for each in parts):
        return
    names = [_apart(each, parts) for each in parts]
    for number, name in enumerate(names):
        turned = [_turned(each) if at == number else each for at, each in enumerate(shapes)]
        turn = OpCall("Transpose", {"dim0": 1, "dim1": 2, "only": [name]})
        yield from ((made, (turn, *ops)) for made, ops in _laid_flat(turned, target))


def _turned(shapes: Shapes) -> Shapes:
    return {index: (shape[0], shape[2], shape[1]) for index, shape in shapes.items()}


def _apart(template: Template, all_: Sequence[Template]) -> str:
    """Give the part of a name that the others lack."""
    others = {part for each in all_ if each is not template for part in each.parts}
    return next((part for part in template.parts if part not in others), template.parts[-1])


def _laid_flat(parts: Sequence[Shapes], target: Shapes) -> Iterator[Laid]:
    """Yield what three axes make when parts are joined along the second, and the first two are one in the target."""
    made = {index: _laid([part[index] for part in parts], 1) for index in target}
    whole = {index: shape for index, shape in made.items() if shape is not None}
    if len(whole) == len(target) and all((s[0] * s[1], s[2]) == target[index] for index, s in whole.items()):
        lengths = [next(iter(part.values()))[1] for part in parts]
        yield whole, (OpCall("Concatenate", {"dim": 1, "sizes": lengths}),)


def joined(parts: Sequence[Shapes], target: Shapes) -> Iterator[Laid]:
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
