"""Keys and values that layers share: the last layers of a model attend to those that earlier ones have made.

Within one call a layer lends what its cache gives it, and a later layer with the same window, which has no keys and
values of its own, borrows from the last that lent (arXiv 2405.12981, between neighbours; Gemma 3n, over the upper
half). To its attention, a borrowed pair is what its cache gives. Between calls a borrower keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine.errors import UsageError
from weightloom.plugins.layers.attention import Attention, AttentionShape, by_head
from weightloom.plugins.layers.cache import Cache, CountingCache, position_of
from weightloom.plugins.layers.decoder import Decoder, Layer
from weightloom.plugins.layers.masks import Mask, Window
from weightloom.plugins.layers.norms import Norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.layers.stages import Stage

Lent = dict[Window, tuple[mx.array, mx.array]]
"""The keys and values that were lent last, by window."""


class Sharing:
    """A layer's cache during one call, with what layers of its window have lent."""

    def __init__(self, cache: Cache, lent: Lent, window: Window) -> None:
        self._cache, self._lent, self._window = cache, lent, window
        self.padding = cache.padding

    @property
    def offset(self) -> int:
        """Tokens seen so far, padding among them."""
        return self._cache.offset


class Lending(Sharing):
    """A lender's: what it gives is lent as well."""

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Take new keys and values; give, and lend, all that the new tokens may attend to."""
        self._lent[self._window] = self._cache.update(keys, values)
        return self._lent[self._window]


class Borrowing(Sharing):
    """A borrower's: it gives what was lent."""

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Count the new tokens, along axis 2 of what comes; give what was lent."""
        self._cache.update(keys, values)
        return self._lent[self._window]


class BorrowersCache(CountingCache):
    """What a borrower keeps between calls: how many tokens there were."""

    kind = "shared"


class BorrowingAttention(Attention):
    """Attention to borrowed keys and values: parameters `q_proj`, `q_norm` if any, and `o_proj`."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, head_norm: Norm | None = None) -> None:
        super().__init__(shape, rope, head_norm)
        del self.k_norm

    def __call__(self, x: mx.array, mask: Mask, cache: Cache) -> mx.array:
        """Mix tokens (B, L, hidden_size); `cache` gives the keys and values."""
        queries = by_head(self.q_norm(self.split(self.q_proj(x))))
        position, seen = position_of(cache), cache.offset
        placed = queries if self._rope is None else self._rope(queries, position)
        return self.out(self.over(placed, *cache.update(queries, queries), mask, seen, position), x)

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the matrices of queries and of what comes after."""
        wide = shape.heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, wide, bias=shape.bias)
        self.o_proj = nn.Linear(wide, shape.hidden_size, bias=shape.out_bias)


class SharingDecoder(Decoder):
    """A decoder whose last `borrowers` layers borrow keys and values from those before."""

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        norm: nn.Module,
        layers: Sequence[Layer],
        borrowers: int,
        embed_scale: float = 1.0,
    ) -> None:
        super().__init__(vocab_size, hidden_size, norm, layers, embed_scale)
        self._lenders = len(layers) - borrowers

    def through(self, x: mx.array, tokens: mx.array, masks: Mapping[Window, Mask], caches: Sequence[Cache]) -> mx.array:
        """Put x (B, L, hidden_size), which tokens (B, L) became, through the layers; the shape stays."""
        lent: Lent = {}
        calls = zip(self.blocks, self.calls(x, tokens), caches, strict=True)
        for number, (layer, call, own) in enumerate(calls):
            during = Lending if number < self._lenders else Borrowing
            x = call(x, masks[layer.window], during(own, lent, layer.window))
        return x

    def calls(self, x: mx.array, tokens: mx.array) -> Sequence[Callable[..., mx.array]]:
        """Give what does each layer's part, for x (B, L, hidden_size) that tokens (B, L) became."""
        return self.blocks

    def at_stage(self, stage: Stage) -> None:
        """Raise UsageError: what is lent does not go from rank to rank."""
        raise UsageError(
            "layers of this model need what another rank would have: keys and values of earlier layers, or embeddings",
            expected="a model whose layers need what comes before them alone",
            hint="run it as one process, or with --parallel tensor",
            field="parallel",
        )
