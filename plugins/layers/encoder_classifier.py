"""The classifier made of an encoder: that, under the name that the family gives it, and what scores its states."""

from __future__ import annotations

from abc import ABC, abstractmethod

import mlx.core as mx
import mlx.nn as nn


class EncoderClassifier(nn.Module, ABC):
    """`model(tokens, attention_mask, token_type_ids)`, each (B, L) int32 -> logits (B, labels).

    The encoder is called the same way. Raises UsageError for rows that are too long for it.
    """

    def __init__(self, name: str, encoder: nn.Module) -> None:
        super().__init__()
        self._name = name
        self[name] = encoder

    @property
    def max_length(self) -> int | None:
        """How many tokens a row may have; None for any number."""
        found: int | None = getattr(self[self._name], "max_length", None)
        return found

    def __call__(
        self, tokens: mx.array, attention_mask: mx.array | None = None, token_type_ids: mx.array | None = None
    ) -> mx.array:
        """See the class."""
        return self.scores(self[self._name](tokens, attention_mask, token_type_ids), attention_mask)

    @abstractmethod
    def scores(self, hidden: mx.array, attention_mask: mx.array | None) -> mx.array:
        """Hidden states (B, L, hidden) of tokens, of which the mask says which are some -> logits (B, labels)."""
