"""Sampling: from logits to the next token, by what is likely enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen. The steps go in this order, and each can be left out by its default.

    `repetition_penalty`: logits of tokens that the row has already are divided by it where positive, multiplied where
    negative (arXiv 1909.05858). `temperature` divides logits; 0 takes the likeliest token and leaves out what follows.
    `top_k`: the k likeliest alone. `top_p`: the fewest whose probabilities sum to p (arXiv 1904.09751). `min_p`: those
    at least so likely as min_p times the likeliest (arXiv 2407.01082). `seed`: the same seed, the same tokens.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, isfinite(self.temperature) and self.temperature >= 0, "0 or more")
        _check("top_k", self.top_k, self.top_k >= 0, "0 (all) or more")
        _check("top_p", self.top_p, 0 < self.top_p <= 1, "more than 0, and 1 at most")
        _check("min_p", self.min_p, 0 <= self.min_p <= 1, "0 to 1")
        penalty = self.repetition_penalty
        _check("repetition_penalty", penalty, isfinite(penalty) and penalty > 0, "a positive number")


def _check(field: str, value: float, fine: bool, expected: str) -> None:
    if not fine:
        raise UsageError(f"{field} is {value}", expected=expected, field=field)


def keys(seed: int | None) -> Iterator[mx.array | None]:
    """Give a key a token; None, for MLX's own state, without a seed."""
    import mlx.core as mx

    key = None if seed is None else mx.random.key(seed)
    while True:
        now = None
        if key is not None:
            key, now = mx.random.split(key)
        yield now


def choose(logits: mx.array, how: Sampling, key: mx.array | None, seen: mx.array | None) -> mx.array:
    """Choose a token a row: logits (B, vocab) -> (B,) int. `seen` (B, vocab) bool says what a row has already.

    Each row is chosen as it would be alone: rows with the same logits and one key get the same token.
    """
    import mlx.core as mx

    scores = logits if seen is None else penalised(logits, seen, how.repetition_penalty)
    if how.temperature == 0:
        return mx.argmax(scores, axis=-1)
    allowed = likely(scores.astype(mx.float32) / how.temperature, how)
    return mx.concatenate([mx.random.categorical(row, key=key) for row in mx.split(allowed, len(allowed))])


def penalised(logits: mx.array, seen: mx.array, penalty: float) -> mx.array:
    """Make tokens less likely (for a penalty above 1) that a row has already."""
    import mlx.core as mx

    return mx.where(seen, mx.where(logits > 0, logits / penalty, logits * penalty), logits)


def likely(scores: mx.array, how: Sampling) -> mx.array:
    """Give scores (B, vocab) float32, -inf for tokens that are not likely enough."""
    if 0 < how.top_k < scores.shape[-1]:
        scores = _best(scores, how.top_k)
    if how.top_p < 1:
        scores = _nucleus(scores, how.top_p)
    if how.min_p > 0:
        scores = _near_the_best(scores, how.min_p)
    return scores


def _best(scores: mx.array, k: int) -> mx.array:
    import mlx.core as mx

    least = mx.min(mx.topk(scores, k, axis=-1), axis=-1, keepdims=True)
    return mx.where(scores < least, -mx.inf, scores)


def _nucleus(scores: mx.array, p: float) -> mx.array:
    import mlx.core as mx

    order = mx.argsort(scores, axis=-1)
    up_to = mx.cumsum(mx.softmax(mx.take_along_axis(scores, order, axis=-1), axis=-1), axis=-1)
    # The likeliest stays, however p is rounded.
    last = mx.arange(scores.shape[-1]) == scores.shape[-1] - 1
    kept = mx.put_along_axis(mx.zeros(scores.shape, mx.bool_), order, (up_to > 1 - p) | last, axis=-1)
    return mx.where(kept, scores, -mx.inf)


def _near_the_best(scores: mx.array, min_p: float) -> mx.array:
    import mlx.core as mx

    shares = mx.softmax(scores, axis=-1)
    return mx.where(shares < min_p * shares.max(axis=-1, keepdims=True), -mx.inf, scores)
