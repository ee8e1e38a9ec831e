"""A model in two parts: its layers, and the head that scores tokens, which a prompt needs for its last token only."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import mlx.core as mx


@runtime_checkable
class Headed(Protocol):
    """What a model may offer beside `__call__`, so that generation asks for no scores that it throws away."""

    def body(self, tokens: mx.array, cache: Any) -> mx.array:
        """Tokens (B, L) int -> hidden states (B, L, hidden_size)."""
        ...

    def head(self, hidden: mx.array) -> mx.array:
        """Hidden states (B, L, hidden_size) -> logits (B, L, vocab)."""
        ...
