"""A block's work on one token as two compiled functions: what comes before its cache, and what comes after.

A token's work is many small steps, and building and starting them costs more than they do. What compiles is the same at
every token: only what a cache holds grows, and is left between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.attention import Attention
from weightloom.plugins.layers.masks import Mask


class Parted(Protocol):
    """What is compiled of a block: all but its attention."""

    def entered(self, x: mx.array) -> mx.array:
        """Give what attention takes of what came, (B, L, hidden_size)."""
        ...

    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Give what the block makes of x, where attention has made `mixed` of `entered`."""
        ...


class Halves:
    """The two functions of a block, compiled when they are first called with a shape, for the parameters of now."""

    def __init__(self, block: Parted, attention: Attention, held: nn.Module) -> None:
        """Compile for a block around an attention; `held` has the parameters of both."""

        def before(x: mx.array) -> tuple[mx.array, mx.array, mx.array, mx.array]:
            entered = block.entered(x)
            queries, keys, values = attention.heads_of(entered)
            return entered, queries, keys, values

        def after(x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
            return block.left(x, entered, attention.out(mixed, entered))

        self._through_cache = attention.through_cache
        self._places, self._names, self._values = zip(*_held(held), strict=True)
        self._before, self._after = mx.compile(before), mx.compile(after)

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """One token a row (B, 1, hidden_size) -> what the block makes of it, the same shape."""
        entered, queries, keys, values = self._before(x)
        made: mx.array = self._after(x, entered, self._through_cache(queries, keys, values, mask, cache))
        return made

    def holds(self) -> bool:
        """Say whether the block's modules and parameters are still those that were compiled."""
        # Without a frame of Python for each: a block has some twenty, and is asked at each token.
        return all(map(is_, map(dict.get, self._places, self._names), self._values))


def can_be_halved(attention: nn.Module) -> bool:
    """Say whether a layer does attention in the steps that `Halves` calls."""
    return isinstance(attention, Attention) and type(attention).__call__ is Attention.__call__


def _held(module: nn.Module) -> Iterator[tuple[nn.Module, str, object]]:
    """Give each module's modules and arrays with their places, as deep as they go."""
    for name, value in module.items():
        yield module, name, value
        if isinstance(value, nn.Module):
            yield from _held(value)
