"""Rope: turns queries and keys by their positions."""

from __future__ import annotations

from typing import cast

import mlx.core as mx

from weightloom.plugins.configs.rope_config import RopeConfig

# Longer than any context: frequencies that are the same there never change.
_FAR = 2**40


class Rope:
    """Turns the first dims of each head in float32: the first half of them against the second, or, `interleaved`, each
    even one against its neighbour.

    No parameters: the frequencies follow from the config. A value of its own, shared by the layers of one kind.
    """

    def __init__(self, config: RopeConfig, head_dim: int, interleaved: bool = False) -> None:
        self._config = config
        self._interleaved = interleaved
        self._constant = self._periods(config.rotation.trained)
        self._grows = config.kind.context(config.rotation, _FAR) != config.rotation.trained
        self._factors = self._factors_of(head_dim)

    def __call__(self, heads: mx.array, offset: int | mx.array) -> mx.array:
        """Turn heads (B, H, L, head_dim), the first at position `offset`, one number or one a row; the dtype stays."""
        # A GPU's kernel computes in float32 whatever comes; the CPU computes in the dtype that comes.
        on_gpu = mx.default_device() == mx.Device(mx.gpu)
        turned = mx.fast.rope(
            heads if on_gpu and self._factors is None else heads.astype(mx.float32),
            self._config.rotation.dims,
            traditional=self._interleaved,
            base=None,
            scale=1.0,
            offset=offset,
            freqs=self._for(_last(offset) + heads.shape[2]) if self._grows else self._constant,
        )
        scaled = turned if self._factors is None else turned * self._factors
        return scaled.astype(heads.dtype)

    def _for(self, length: int) -> mx.array:
        rotation = self._config.rotation
        context = self._config.kind.context(rotation, length)
        return self._constant if context == rotation.trained else self._periods(context)

    def _periods(self, length: int) -> mx.array:
        """Give positions a radian, (dims / 2,): what MLX takes for frequencies."""
        frequencies = self._config.kind.frequencies(self._config.rotation, length)
        return mx.array((1.0 / frequencies).astype("float32"))

    def _factors_of(self, head_dim: int) -> mx.array | None:
        factor = self._config.kind.attention_factor(self._config.rotation)
        if factor == 1.0:
            return None
        dims = self._config.rotation.dims
        return mx.where(mx.arange(head_dim) < dims, factor, 1.0).astype(mx.float32)


def _last(offset: int | mx.array) -> int:
    """Give the offset of the longest row."""
    return offset if isinstance(offset, int) else int(cast(int, offset.max().item()))
