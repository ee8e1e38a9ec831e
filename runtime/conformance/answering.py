"""How the kit asks a model: whole, or in parts through its cache."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from weightloom.runtime.conformance.comparing import as_numpy
from weightloom.runtime.conformance.sample import Array

CHUNK = 7


def answers(model: Any, tokens: mx.array, *more: object) -> Array:
    """Give logits, hidden states or scores for tokens (2, L), as float32."""
    return as_numpy(model(tokens, *more))


def answers_in_parts(model: Any, tokens: mx.array, cache: Any) -> Array:
    """Answer the first half of a prompt in chunks, then token by token."""
    length = tokens.shape[1]
    starts = [*range(0, length // 2, CHUNK), *range(length // 2 // CHUNK * CHUNK + CHUNK, length)]
    ends = [*starts[1:], length]
    parts = [model(tokens[:, a:b], cache) for a, b in zip(starts, ends, strict=True)]
    return as_numpy(mx.concatenate(parts, axis=1))
