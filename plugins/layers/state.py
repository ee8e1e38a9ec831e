"""States: what a recurrent layer keeps of the tokens seen so far, whatever their number."""

from __future__ import annotations

from typing import Protocol

import mlx.core as mx

from weightloom.plugins.layers.cache import Counting


class State(Counting, Protocol):
    """What a recurrent layer asks of a cache."""

    def get(self, name: str) -> mx.array | None:
        """Give the array kept under a name; None before the first token."""
        ...

    def put(self, length: int, **states: mx.array) -> None:
        """Keep arrays by name, as they are after `length` more tokens."""
        ...


class StateCache:
    """Keeps arrays by name, each replaced by the next."""

    kind = "state"
    padding: mx.array | None = None

    def __init__(self) -> None:
        self._offset = 0
        self._states: dict[str, mx.array] = {}

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self._offset

    def get(self, name: str) -> mx.array | None:
        """Give the array kept under a name; None before the first token."""
        return self._states.get(name)

    def put(self, length: int, **states: mx.array) -> None:
        """Keep arrays by name, as they are after `length` more tokens."""
        self._states |= states
        self._offset += length


def without_padding(x: mx.array, state: State) -> mx.array:
    """Give x (B, L, ...) with 0 for the tokens that fill up a row, so that they leave no trace in a state."""
    if state.padding is None or (state.offset and x.shape[1] == 1):
        return x
    real = mx.arange(state.offset, state.offset + x.shape[1])[None, :] >= state.padding[:, None]
    return mx.where(real.reshape(*real.shape, *[1] * (x.ndim - 2)), x, mx.zeros_like(x))
