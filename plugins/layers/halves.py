"""A block's work on one token as two compiled functions: what comes before its cache, and what comes after.

A token's work is many small steps, and building and starting them costs more than they do. What compiles is the same at
every token: only what a cache holds grows, and is left between the two.
"""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.attention import Attention

Before = Callable[[mx.array], tuple[mx.array, mx.array, mx.array, mx.array]]
After = Callable[[mx.array, mx.array, mx.array], mx.array]


class Halves:
    """The two functions of a block, compiled when they are first called with a shape; they follow its parameters."""

    def __init__(self, block: nn.Module, enter: Callable[[mx.array], mx.array], leave: After) -> None:
        """Compile for a block: `enter` makes what attention takes, `leave` what comes after it, see `after`."""
        attention: Attention = block.self_attn

        def before(x: mx.array) -> tuple[mx.array, mx.array, mx.array, mx.array]:
            entered = enter(x)
            return entered, *attention.heads_of(entered)

        def after(x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
            return leave(x, entered, attention.out(mixed, entered))

        self.before: Before = mx.compile(before, inputs=[block])
        """x (B, 1, hidden_size) -> what attention takes, and its queries, keys and values (B, heads, 1, head_dim)."""
        self.after: After = mx.compile(after, inputs=[block])
        """x, what attention took, its mix of values (B, 1, heads * head_dim) -> what the block makes."""


def can_be_halved(attention: nn.Module) -> bool:
    """Say whether a layer does attention in the steps that `Halves` calls."""
    return isinstance(attention, Attention) and type(attention).__call__ is Attention.__call__
