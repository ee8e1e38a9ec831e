"""Rows of tokens in batches: rows of like length together, padded, and their results back in the rows' order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import mlx.core as mx

T = TypeVar("T")

_BATCH = 32


def in_batches(rows: Sequence[Sequence[int]], run: Callable[[list[int]], Sequence[T]]) -> list[T]:
    """Call `run` with the numbers of a batch's rows, for every batch; give what it gives for each row, in order."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    found: dict[int, T] = {}
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        found.update(zip(batch, run(batch), strict=True))
    return [found[number] for number in range(len(rows))]


def padded(rows: Sequence[Sequence[int]]) -> mx.array:
    """Give rows as one array (B, L) int32, filled up with 0 on the right."""
    import mlx.core as mx

    longest = max(map(len, rows))
    return mx.array([[*row, *[0] * (longest - len(row))] for row in rows], dtype=mx.int32)


def mask_of(rows: Sequence[Sequence[int]], without: int = 0) -> mx.array:
    """Give (B, L) int32: 1 for the tokens of a row, 0 for what fills it up, and for its first `without` tokens."""
    return padded([[0] * min(without, len(row)) + [1] * (len(row) - without) for row in rows])
