"""The cache of a layer that attends and keeps a state as well."""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.cache import FullCache
from weightloom.plugins.layers.state import StateCache


class TwoCaches:
    """The caches of attention and of what keeps a state, as one."""

    kind = "full, and state"

    def __init__(self) -> None:
        self.attention, self.state = FullCache(), StateCache()

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self.attention.offset

    @property
    def padding(self) -> mx.array | None:
        """How many tokens at the start of each row are none."""
        return self.attention.padding

    @padding.setter
    def padding(self, padding: mx.array | None) -> None:
        self.attention.padding = self.state.padding = padding
