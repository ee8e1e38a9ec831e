"""How a tensor of one shape becomes one of another: the same axes in another order, or with axes of length one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from math import prod

from weightloom.rules.proposing.links import OpCall
from weightloom.rules.proposing.templates import Shape

Pairs = frozenset[tuple[Shape, Shape]]


def relayings(pairs: Pairs) -> Iterator[tuple[OpCall, ...]]:
    """Yield chains of ops that lead from each first shape to its second, the likeliest first."""
    if all(one == other for one, other in pairs):
        yield ()
        return
    ranks = {(len(one), len(other)) for one, other in pairs}
    if len(ranks) != 1 or any(prod(one) != prod(other) for one, other in pairs):
        return
    ((before, after),) = ranks
    if before == after:
        yield from _reordered(pairs, before)
    yield from _with_ones(pairs, before, after)
    yield from _merged(pairs, before, after)


def _reordered(pairs: Pairs, rank: int) -> Iterator[tuple[OpCall, ...]]:
    if rank < 2 or rank > 5:
        return
    if _fits(pairs, (0, rank - 1, *range(1, rank - 1))) and rank > 2 and _last_is_channels(pairs):
        yield (OpCall("ChannelsFirst", {"channels": 1}),)
        return
    for one in range(rank - 1, 0, -1):
        for other in range(one - 1, -1, -1):
            order = list(range(rank))
            order[one], order[other] = order[other], order[one]
            if _fits(pairs, order):
                yield (OpCall("Transpose", {"dim0": other, "dim1": one}),)
    if rank > 2:
        swaps = {order for order in permutations(range(rank)) if sum(a != b for a, b in enumerate(order)) > 2}
        yield from ((OpCall("Permute", {"axes": list(order)}),) for order in sorted(swaps) if _fits(pairs, order))


def _last_is_channels(pairs: Pairs) -> bool:
    """Tell a filter of one channel, which has it last."""
    return all(one[-1] == 1 and other[1] == 1 for one, other in pairs)


def _fits(pairs: Pairs, order: Iterable[int]) -> bool:
    places = tuple(order)
    return all(tuple(one[place] for place in places) == other for one, other in pairs)


def _with_ones(pairs: Pairs, before: int, after: int) -> Iterator[tuple[OpCall, ...]]:
    """Take axes of length one away or put them in."""
    if before == after + 1:
        yield from ((OpCall("Squeeze", {"dim": dim}),) for dim in range(before) if _without(pairs, dim))
    if after == before + 1:
        turned = frozenset((other, one) for one, other in pairs)
        yield from ((OpCall("Unsqueeze", {"dim": dim}),) for dim in range(after) if _without(turned, dim))


def _without(pairs: Pairs, dim: int) -> bool:
    return all(one[dim] == 1 and (*one[:dim], *one[dim + 1 :]) == other for one, other in pairs)


def _merged(pairs: Pairs, before: int, after: int) -> Iterator[tuple[OpCall, ...]]:
    """Make one axis of two that are neighbours, or two of one."""
    if before == after + 1:
        yield from ((OpCall("Flatten", _sizes(pairs, dim)),) for dim in range(after) if _joins(pairs, dim))
    if after == before + 1:
        turned = frozenset((other, one) for one, other in pairs)
        yield from ((OpCall("Unflatten", _sizes(turned, dim)),) for dim in range(before) if _joins(turned, dim))


def _joins(pairs: Pairs, dim: int) -> bool:
    longer = all(min(one[dim], one[dim + 1]) > 1 for one, _ in pairs)
    return longer and all((*one[:dim], one[dim] * one[dim + 1], *one[dim + 2 :]) == other for one, other in pairs)


def _sizes(pairs: Pairs, dim: int) -> dict[str, object]:
    """Say which axes, and how long the second is, which must be alike everywhere for the way back."""
    lengths = {one[dim + 1] for one, _ in pairs}
    sizes = {"sizes": [-1, lengths.pop()]} if len(lengths) == 1 else {}
    return {"start_dim": dim, "end_dim": dim + 1, **sizes}
