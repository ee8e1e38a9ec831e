"""Caches of keys and values: what attention keeps of the tokens seen so far, one cache a layer.

A cache says how many tokens it has seen (`offset`), and `update` takes the keys and values of new ones,
(B, kv_heads, L, head_dim), and gives those that the new tokens may attend to. They come oldest first and end with
the new ones; for one new token their order is free, for it attends to all of them.

Rows of a batch that are shorter than others are filled up in front: `padding` (B,) int, put into each cache of a model
before its first token, says by how much. Positions count from the first token that is one.
"""

from __future__ import annotations

from typing import Protocol

import mlx.core as mx

from weightloom.plugins.layers.masks import Window

STEP = 256


class Counting(Protocol):
    """What every cache says, whatever it keeps."""

    padding: mx.array | None

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        ...


class Cache(Counting, Protocol):
    """What attention asks of a cache."""

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Take new keys and values; give all that the new tokens may attend to."""
        ...


def padding_of(cache: object) -> mx.array | None:
    """Give by how much rows are filled up, (B,); None without padding, or for a cache that does not know of any."""
    return getattr(cache, "padding", None)


def position_of(cache: Counting) -> int | mx.array:
    """Give the position of the next token: one number, or with padding one a row, (B,)."""
    padding = padding_of(cache)
    return cache.offset if padding is None else cache.offset - padding


def positions_of(cache: Counting, length: int) -> mx.array:
    """Give the positions of the next `length` tokens, (L,), or with padding (B, L); what fills up a row has 0."""
    count = mx.arange(cache.offset, cache.offset + length)
    padding = padding_of(cache)
    return count if padding is None else mx.maximum(count[None, :] - padding[:, None], 0)


class NoCache:
    """Nothing is kept: the tokens at hand are all there are."""

    padding: mx.array | None = None

    @property
    def offset(self) -> int:
        """Give 0."""
        return 0

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Give back what came."""
        return keys, values

    def index(self, keys: mx.array) -> mx.array:
        """Give back what came."""
        return keys

    def get(self, name: str) -> mx.array | None:
        """Give None: there is no state before the first token."""
        return None

    def put(self, length: int, **states: mx.array) -> None:
        """Keep nothing."""


class CountingCache:
    """Nothing is kept but how many tokens there were."""

    padding: mx.array | None = None

    def __init__(self) -> None:
        self._offset = 0

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self._offset

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Count, and give back what came."""
        self._offset += keys.shape[2]
        return keys, values


class FullCache:
    """Keeps all; a token is written in place into buffers that grow in steps."""

    kind = "full"
    padding: mx.array | None = None

    def __init__(self) -> None:
        self._offset = 0
        self._keys, self._values = _Buffer(), _Buffer()

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self._offset

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Keep new keys and values; give all."""
        start, self._offset = self._offset, self._offset + keys.shape[2]
        self._keys.write(start, keys)
        self._values.write(start, values)
        return self._keys.read(self._offset), self._values.read(self._offset)


class IndexedCache(FullCache):
    """Keeps all, and of each token a key of an index, by which later ones choose among the tokens."""

    kind = "full, with an index"

    def __init__(self) -> None:
        super().__init__()
        self._index = _Buffer()

    def index(self, keys: mx.array) -> mx.array:
        """Take the index's keys of new tokens, (B, heads, L, dims), before `update` takes the others; give all."""
        self._index.write(self.offset, keys)
        return self._index.read(self.offset + keys.shape[2])

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Keep new keys and values; give all."""
        given = super().update(keys, values)
        # While the index has nothing to choose nobody asks for its keys, and what is to be computed would pile up.
        after: list[mx.array] = mx.depends(list(given), [self._index.read(self.offset)])
        return after[0], after[1]


class SlidingCache:
    """Keeps the last `window` tokens in a ring: position p stands in slot p mod window."""

    padding: mx.array | None = None

    def __init__(self, window: int) -> None:
        self._offset = 0
        self.kind = f"window of {window}"
        self._keys, self._values = _Ring(window), _Ring(window)

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self._offset

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Keep new keys and values; give them after the last window - 1 older ones."""
        start, self._offset = self._offset, self._offset + keys.shape[2]
        return self._keys.update(start, keys), self._values.update(start, values)


def make_cache(window: Window) -> FullCache | SlidingCache:
    """Give the cache for a layer with a window; one that sees chunks keeps all."""
    return SlidingCache(window) if isinstance(window, int) else FullCache()


class _Buffer:
    """An array (B, heads, capacity, head_dim) whose capacity grows in steps up to a limit."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._array: mx.array | None = None

    def write(self, start: int, new: mx.array) -> None:
        """Write at slots from `start` on."""
        stop = start + new.shape[2]
        array = self._with_room(stop, new)
        array[:, :, start:stop] = new
        self._array = array

    def read(self, stop: int) -> mx.array:
        """Give the slots before `stop`."""
        assert self._array is not None
        return self._array if self._array.shape[2] == stop else self._array[:, :, :stop]

    def _with_room(self, stop: int, like: mx.array) -> mx.array:
        held = 0 if self._array is None else self._array.shape[2]
        if self._array is not None and stop <= held:
            return self._array
        batch, heads, _, dims = like.shape
        more = mx.zeros((batch, heads, self._capacity(stop) - held, dims), like.dtype)
        return more if self._array is None else mx.concatenate([self._array, more], axis=2)

    def _capacity(self, stop: int) -> int:
        rounded = -(-stop // STEP) * STEP
        return rounded if self._limit is None else min(rounded, self._limit)


class _Ring:
    """The last `window` entries of a sequence along axis 2."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._buffer = _Buffer(window)

    def update(self, start: int, new: mx.array) -> mx.array:
        """Take entries of positions from `start` on; give them after the last window - 1 older ones."""
        if new.shape[2] == 1:
            self._buffer.write(start % self._window, new)
            return self._buffer.read(min(start + 1, self._window))
        seen = mx.concatenate([self._older(start), new], axis=2) if start else new
        self._refill(start + new.shape[2], seen)
        return seen

    def _older(self, start: int) -> mx.array:
        """Give the last window - 1 entries before position `start`, oldest first."""
        held = min(start, self._window)
        first = start % self._window if held == self._window else 0
        ordered = _turned(self._buffer.read(held), first)
        return ordered[:, :, max(held - self._window + 1, 0) :]

    def _refill(self, stop: int, seen: mx.array) -> None:
        """Put the entries before position `stop` into their slots; `seen` ends with the one before it."""
        last = seen[:, :, max(seen.shape[2] - self._window, 0) :]
        held = last.shape[2]
        self._buffer.write(0, _turned(last, (held - stop % self._window) % held if held == self._window else 0))


def _turned(entries: mx.array, first: int) -> mx.array:
    """Give the entries from `first` on, then those before it."""
    if first == 0:
        return entries
    return mx.concatenate([entries[:, :, first:], entries[:, :, :first]], axis=2)
