"""AltUp (arXiv 2301.13310): several streams of states, of which a layer works on one, as Gemma 3n has it.

Streams are (B, L, streams, hidden_size).
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.norms import Norm

_SMALLEST = 1e-5


class AltUp(nn.Module):
    """Predicts the streams before a layer, and corrects them after it by what it changed of the active one."""

    def __init__(self, hidden_size: int, streams: int, active: int, norm: Norm) -> None:
        super().__init__()
        self._active = active
        self.correct_output_scale = mx.zeros((hidden_size,))
        self.correction_coefs = nn.Linear(streams, streams, bias=False)
        self.prediction_coefs = nn.Linear(streams, streams**2, bias=False)
        self.modality_router = nn.Linear(hidden_size, streams, bias=False)
        self.router_norm = norm(hidden_size)

    def predict(self, streams: mx.array) -> mx.array:
        """Give each stream with a mix of all added, by weights that the active one decides."""
        count = streams.shape[2]
        weights = self.prediction_coefs(self._routed(self.active(streams)))
        return streams + weights.reshape(*streams.shape[:2], count, count) @ streams

    def correct(self, predicted: mx.array, made: mx.array) -> mx.array:
        """Give the streams, each moved by a share of how `made` (B, L, hidden_size) differs from the active one."""
        shares = self.correction_coefs(self._routed(made)) + 1
        return predicted + shares[..., None] * (made - self.active(predicted))[:, :, None]

    def active(self, streams: mx.array) -> mx.array:
        """Give the stream that a layer works on, (B, L, hidden_size)."""
        return streams[:, :, self._active]

    def _routed(self, x: mx.array) -> mx.array:
        scores = self.modality_router(self.router_norm(x) / x.shape[-1])
        return mx.tanh(scores.astype(mx.float32)).astype(x.dtype)


def spread(x: mx.array, projections: Sequence[nn.Module]) -> mx.array:
    """Make streams of x (B, L, hidden_size): itself, and each projection of it, as large as it is."""
    size = _magnitude(x)
    return mx.stack([x, *(_as_large(each(x), size) for each in projections)], axis=2)


def gathered(streams: mx.array, projections: Sequence[nn.Module]) -> mx.array:
    """Make one state of streams: the mean of the first and the projections of the others, as large as the first."""
    first = streams[:, :, 0]
    size = _magnitude(first)
    others = (_as_large(each(streams[:, :, number]), size) for number, each in enumerate(projections, 1))
    return mx.stack([first, *others]).mean(axis=0)


def _magnitude(x: mx.array) -> mx.array:
    return mx.sqrt(_mean_square(x))


def _as_large(x: mx.array, size: mx.array) -> mx.array:
    return (x * (size / mx.sqrt(mx.maximum(_mean_square(x), _SMALLEST)))).astype(x.dtype)


def _mean_square(x: mx.array) -> mx.array:
    return x.astype(mx.float32).square().mean(axis=-1, keepdims=True)
