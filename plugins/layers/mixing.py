"""What blocks have in common: one step in which tokens see others, with work on each token before and after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.cache import make_cache
from weightloom.plugins.layers.halves import Halves, can_be_halved
from weightloom.plugins.layers.masks import Mask, Window


class Mixer(Protocol):
    """What mixes tokens: a call as of attention, and an empty cache of its own kind."""

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        ...

    def make_cache(self) -> Any:
        """Give an empty cache."""
        ...


class MixingBlock(nn.Module, ABC):
    """A block around a mixer; a subclass says what is done before that, `entered`, and after it, `left`.

    A mixer is called as attention is, (x, mask, cache); `mixer_name` is its name in the block. `window` None: a token
    sees all before it. Where the mixer is attention in its usual steps, the work on one token can be compiled.
    """

    mixer_name = "self_attn"
    _halves: Halves | None = None

    def __init__(self, window: Window = None) -> None:
        super().__init__()
        self.window = window

    def __call__(self, x: mx.array, mask: Mask, cache: Any) -> mx.array:
        """(B, L, hidden_size) -> the same shape."""
        halves = self._halves
        if halves is not None and x.shape[1] == 1 and halves.holds():
            return halves(x, mask, cache)
        entered = self.entered(x)
        return self.left(x, entered, self[self.mixer_name](entered, mask, cache))

    def entered(self, x: mx.array) -> mx.array:
        """Give what the mixer takes of what came, (B, L, hidden_size): that itself, where no norm stands before it."""
        return x

    @abstractmethod
    def left(self, x: mx.array, entered: mx.array, mixed: mx.array) -> mx.array:
        """Give what the block makes of x, where the mixer has made `mixed` of `entered`."""

    def compile_steps(self) -> bool:
        """Compile what is done for one token, but for the cache, from now on; say whether it can be."""
        attention = self[self.mixer_name]
        self._halves = Halves(self, attention, self) if can_be_halved(attention) else None
        return self._halves is not None

    def make_cache(self) -> Any:
        """Give an empty cache."""
        return make_cache(self.window)
