"""A block's work on one token as two compiled functions: what comes before its cache, and what comes after.

A token's work is many small steps, and building and starting them costs more than they do. What compiles is the same at
every token: only what a cache holds grows, and is left between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.attention import Attention

After = Callable[[mx.array, mx.array, mx.array], mx.array]


class Halves:
    """The two functions of a block, compiled when they are first called with a shape, for the parameters of now."""

    def __init__(self, block: nn.Module, enter: Callable[[mx.array], mx.array], leave: After) -> None:
        """Compile for a block: `enter` makes what attention takes, `leave` what comes after it, see `after`."""
        attention: Attention = block["self_attn"]

        def before(x: mx.array) -> tuple[mx.array, mx.array, mx.array, mx.array]:
            entered = enter(x)
            queries, keys, values = attention.heads_of(entered)
            return entered, queries, keys, values

        def after(x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
            return leave(x, entered, attention.out(mixed, entered))

        self.attention = attention
        self._held = tuple(_held(block))
        self.before = mx.compile(before)
        """x (B, 1, hidden_size) -> what attention takes, and its queries, keys and values (B, heads, 1, head_dim)."""
        self.after: After = mx.compile(after)
        """x, what attention took, its mix of values (B, 1, heads * head_dim) -> what the block makes."""

    def holds(self) -> bool:
        """Say whether the block's modules and parameters are still those that were compiled."""
        return all(place.get(name) is value for place, name, value in self._held)


def can_be_halved(attention: nn.Module) -> bool:
    """Say whether a layer does attention in the steps that `Halves` calls."""
    return isinstance(attention, Attention) and type(attention).__call__ is Attention.__call__


def _held(module: nn.Module) -> Iterator[tuple[nn.Module, str, object]]:
    """Give each module's modules and arrays with their places, as deep as they go."""
    for name, value in module.items():
        yield module, name, value
        if isinstance(value, nn.Module):
            yield from _held(value)
