"""The longest row that an encoder with a table of positions takes."""

from __future__ import annotations

import mlx.core as mx

from weightloom.engine.errors import UsageError


def refuse_longer(tokens: mx.array, most: int) -> None:
    """Raise UsageError for rows of tokens (B, L) that are longer than `most`."""
    length = tokens.shape[1]
    if length > most:
        raise UsageError(f"{length} tokens in a row", expected=f"{most} at most", field="tokens")
