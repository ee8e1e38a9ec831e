"""Routing: from a router's scores to the experts of each token and their weights."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

Router = Callable[[mx.array, int], tuple[mx.array, mx.array]]
"""Scores (..., E) and k -> the chosen experts (..., k), int, and their weights (..., k), float32."""


def softmax_over_chosen(scores: mx.array, k: int) -> tuple[mx.array, mx.array]:
    """Choose the k best; their weights sum to 1."""
    chosen = best(scores, k)
    return chosen, mx.softmax(mx.take_along_axis(scores.astype(mx.float32), chosen, axis=-1), axis=-1)


def softmax_over_all(scores: mx.array, k: int) -> tuple[mx.array, mx.array]:
    """Choose the k best; their weights are their shares among all experts, less than 1 in sum."""
    chosen = best(scores, k)
    shares = mx.softmax(scores.astype(mx.float32), axis=-1)
    return chosen, mx.take_along_axis(shares, chosen, axis=-1)


def best(scores: mx.array, k: int) -> mx.array:
    """Give the indices (..., k) of the k highest scores (..., E), in no order."""
    return mx.argpartition(-scores, kth=k - 1, axis=-1)[..., :k]


def in_best_groups(
    scores: mx.array, groups: int, kept: int, of_group: Callable[[mx.array], mx.array], outside: float = 0.0
) -> mx.array:
    """Give scores (..., E), `outside` where not in the `kept` best of `groups` equal groups (arXiv 2405.04434, 2.1.2).

    `of_group` makes of a group's scores (..., groups, E / groups) the group's own (..., groups).
    """
    grouped = scores.reshape(*scores.shape[:-1], groups, -1)
    chosen = best(of_group(grouped), kept)
    inside = (mx.arange(groups) == chosen[..., None]).any(axis=-2)
    return mx.where(inside[..., None], grouped, outside).reshape(scores.shape)


def normalised(weights: mx.array, floor: float = 0.0) -> mx.array:
    """Give weights (..., k) over their sum, to which `floor` is added."""
    return weights / (weights.sum(axis=-1, keepdims=True) + floor)
