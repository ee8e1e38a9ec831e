"""Layers by stages: each rank does some of a model's layers, and hands on what it makes to the next."""

from __future__ import annotations

from typing import Protocol

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.cache import Cache, CountingCache
from weightloom.plugins.layers.masks import Mask, Window


class Handover(Protocol):
    """What a decoder does before its first layer and after its last."""

    def take(self, x: mx.array) -> mx.array:
        """Give what the first layer here works on; `x` are the embedded tokens."""
        ...

    def give(self, x: mx.array, dtype: mx.Dtype) -> mx.array:
        """Give what the last layer of all has made; `x` is what the last one here has. `dtype` is the model's own."""
        ...


class Alone:
    """One process does all."""

    def take(self, x: mx.array) -> mx.array:
        """Give x."""
        return x

    def give(self, x: mx.array, dtype: mx.Dtype) -> mx.array:
        """Give x."""
        return x


class Stage:
    """One rank of several, in the order of the layers."""

    def __init__(self, group: mx.distributed.Group) -> None:
        self._group = group

    def layers(self, count: int) -> range:
        """Say which of `count` layers are this rank's; the first ranks have one more where they do not divide."""
        each, more = divmod(count, self._group.size())
        rank = self._group.rank()
        first = rank * each + min(rank, more)
        return range(first, first + each + (rank < more))

    def take(self, x: mx.array) -> mx.array:
        """Give the embedded tokens on the first rank; on the others what the one before has made, in their dtype."""
        rank = self._group.rank()
        if rank == 0:
            return x
        # Receiving depends on nothing, and might come before the exchange that the tokens themselves come from.
        mx.eval(x)
        return mx.distributed.recv_like(x, rank - 1, group=self._group)

    def give(self, x: mx.array, dtype: mx.Dtype) -> mx.array:
        """Send to the next rank, if any; give, on all ranks, what the last one has made, as `dtype`."""
        rank, batch = self._group.rank(), x.shape[0]
        # What layers compute in follows from what a rank holds; ranks agree on the dtype of what all of them hold.
        sent = x.astype(dtype)
        if rank + 1 < self._group.size():
            sent = mx.distributed.send(sent, rank + 1, group=self._group)
        return mx.distributed.all_gather(sent, group=self._group)[-batch:]


class ElsewhereCache(CountingCache):
    """The cache of a layer of another rank: counts tokens and keeps nothing."""


class Elsewhere(nn.Module):
    """A layer that another rank does; it has no parameters."""

    def __init__(self, window: Window) -> None:
        super().__init__()
        self.window = window

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """(B, L, hidden_size) -> the same, the tokens counted."""
        cache.update(x[:, None], x[:, None])
        return x

    def make_cache(self) -> Cache:
        """Give an empty cache."""
        return ElsewhereCache()
