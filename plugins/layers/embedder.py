"""Decoders without their head: as embedders, which give hidden states, and as classifiers, which give scores."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine.errors import UsageError
from weightloom.plugins.layers.cache import NoCache
from weightloom.plugins.layers.decoder import Decoder
from weightloom.plugins.layers.masks import Chunked, Mask, Window, mutual_mask

Sight = Callable[[int, Window, mx.array | None], Mask]
"""The tokens of a row, a window, and which tokens are some, (B, L) of 0 and 1 -> the mask."""


def both_ways(length: int, window: Window, present: mx.array | None) -> Mask:
    """Let tokens see all, or, where there is a window, so many to either side.

    Raises UsageError for layers that see chunks.
    """
    if isinstance(window, Chunked):
        raise UsageError("a layer sees chunks, and tokens are to see what comes after them", expected="windows")
    return mutual_mask(length, None if window is None else window + 1, present)


class Embedder(nn.Module):
    """`model(tokens (B, L) int32, attention_mask (B, L) of 0 and 1) -> hidden states (B, L, hidden)`.

    What a token sees is `sight`'s to say.
    """

    def __init__(self, decoder: Decoder, sight: Sight) -> None:
        super().__init__()
        self._name = decoder.names.decoder
        self._sight = sight
        self[self._name] = decoder

    def __call__(self, tokens: mx.array, attention_mask: mx.array | None = None) -> mx.array:
        """See the class."""
        decoder: Decoder = self[self._name]
        length = tokens.shape[1]
        caches = [NoCache()] * len(decoder.blocks)
        return decoder.under(lambda window: self._sight(length, window, attention_mask), tokens, caches)


class DecoderClassifier(Embedder):
    """`model(tokens, attention_mask)`, each (B, L) int32 -> logits (B, labels): `score` of each row's last token.

    Segments are not told apart. Transformers takes for the last token the last that is not the config's padding, which
    is the same where that fills rows up.
    """

    def __init__(self, decoder: Decoder, sight: Sight, labels: int) -> None:
        super().__init__(decoder, sight)
        self.score = nn.Linear(decoder.embedding.weight.shape[1], labels, bias=False)

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class."""
        hidden = super().__call__(tokens, attention_mask)
        rows, length = tokens.shape
        if attention_mask is None:
            last = mx.full((rows,), length - 1)
        else:
            last = mx.argmax((attention_mask != 0) * mx.arange(1, length + 1), axis=1)
        logits: mx.array = self.score(hidden[mx.arange(rows), last])
        return logits
