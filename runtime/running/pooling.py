"""Pooling: hidden states of a text's tokens to one vector, in each way that sentence-transformers knows.

The formulas are those that its documentation gives for `Pooling`; several ways at once are put side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from weightloom.engine.errors import UsageError

if TYPE_CHECKING:
    import mlx.core as mx

PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken"]
_Pool: TypeAlias = "Callable[[mx.array, mx.array], mx.array]"

_SMALL = 1e-9


def pooling_modes(wanted: str | Sequence[str]) -> tuple[PoolingMode, ...]:
    """Give one way or several, as they are named; raises UsageError for one that there is not, and for none."""
    named = [wanted] if isinstance(wanted, str) else list(wanted)
    found = tuple(mode for name in named for mode in get_args(PoolingMode) if mode == name)
    if not named or len(found) != len(named):
        shown = wanted if isinstance(wanted, str) else ", ".join(map(str, wanted)) or "none"
        raise UsageError(
            f"the pooling is {shown!r}",
            expected=f"one or more of {', '.join(get_args(PoolingMode))}",
            field="pooling",
        )
    return found


def pool(hidden: mx.array, mask: mx.array, modes: Sequence[PoolingMode]) -> mx.array:
    """Pool hidden states (B, L, D) under a mask (B, L) of 0 and 1 to (B, D x the number of ways).

    A text's tokens are those that its row of the mask has; one at least.
    """
    import mlx.core as mx

    return mx.concatenate([_POOLS[mode](hidden, mask) for mode in modes], axis=-1)


def _first(hidden: mx.array, mask: mx.array) -> mx.array:
    import mlx.core as mx

    return hidden[mx.arange(hidden.shape[0]), mx.argmax(mask, axis=1)]


def _last(hidden: mx.array, mask: mx.array) -> mx.array:
    import mlx.core as mx

    from_end = mx.argmax(mask[:, ::-1], axis=1)
    return hidden[mx.arange(hidden.shape[0]), hidden.shape[1] - 1 - from_end]


def _max(hidden: mx.array, mask: mx.array) -> mx.array:
    import mlx.core as mx

    return mx.where(mask[:, :, None] == 0, mx.array(-float("inf")), hidden).max(axis=1)


def _mean(hidden: mx.array, mask: mx.array) -> mx.array:
    weights = mask.astype(hidden.dtype)
    return _sum(hidden, weights) / _at_least(weights.sum(axis=1, keepdims=True))


def _mean_sqrt_len(hidden: mx.array, mask: mx.array) -> mx.array:
    import mlx.core as mx

    weights = mask.astype(hidden.dtype)
    return _sum(hidden, weights) / mx.sqrt(_at_least(weights.sum(axis=1, keepdims=True)))


def _weighted_mean(hidden: mx.array, mask: mx.array) -> mx.array:
    import mlx.core as mx

    weights = mask.astype(hidden.dtype) * mx.arange(1, hidden.shape[1] + 1)
    return _sum(hidden, weights) / _at_least(weights.sum(axis=1, keepdims=True))


def _sum(hidden: mx.array, weights: mx.array) -> mx.array:
    return (hidden * weights[:, :, None]).sum(axis=1)


def _at_least(total: mx.array) -> mx.array:
    import mlx.core as mx

    return mx.maximum(total, _SMALL)


_POOLS: dict[PoolingMode, _Pool] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len": _mean_sqrt_len,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
