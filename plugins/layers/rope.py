"""Rope: turns queries and keys by their positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import mlx.core as mx

from weightloom.plugins.configs.rope_config import RopeConfig

# As short and longer than any context: frequencies that are the same in both never change.
_NEAR, _FAR = 1, 2**40


class Rope:
    """Turns the first dims of each head in float32: the first half of them against the second, or, `interleaved`, each
    even one against its neighbour.

    No parameters: the frequencies follow from the config. A value of its own, shared by the layers of one kind.
    """

    def __init__(self, config: RopeConfig, head_dim: int, interleaved: bool = False) -> None:
        self._config = config
        self._dims = config.rotation.dims
        self._interleaved = interleaved
        self._constant = self._periods(config.rotation.trained)
        self._latest: dict[int, mx.array] = {}
        self._changes = any(
            config.kind.context(config.rotation, length) != config.rotation.trained for length in (_NEAR, _FAR)
        )
        self._factors = self._factors_of(head_dim)
        on_gpu = mx.default_device() == mx.Device(mx.gpu)
        # A GPU's kernel computes in float32 whatever comes; the CPU computes in the dtype that comes.
        self._widens = not on_gpu or self._factors is not None
        # A GPU turns in one step; the CPU in a dozen, which then cost more than joining and cutting.
        self._joins = not on_gpu and not self._changes

    def __call__(self, heads: mx.array, offset: int | mx.array) -> mx.array:
        """Turn heads (B, H, L, head_dim), the first at position `offset`, one number or one a row; the dtype stays."""
        if not self._changes:
            return self.kept(heads, offset)
        turned = self._by_row(offset, heads.shape[2], lambda periods: self._turned(heads, offset, periods))
        return self._finished(turned, heads.dtype)

    def kept(self, keys: mx.array, offset: int | mx.array) -> mx.array:
        """Turn keys as a cache keeps them: by the trained context's frequencies, whatever the length is."""
        return self._finished(self._turned(keys, offset, self._constant), keys.dtype)

    def both(self, queries: mx.array, keys: mx.array, offset: int | mx.array) -> tuple[mx.array, mx.array]:
        """Turn queries, and keys as a cache keeps them, each (B, its heads, L, head_dim)."""
        if not self._joins:
            return self(queries, offset), self.kept(keys, offset)
        turned = self._turned(mx.concatenate([queries, keys], axis=1), offset, self._constant)
        first, second = mx.split(turned, [queries.shape[1]], axis=1)
        return self._finished(first, queries.dtype), self._finished(second, keys.dtype)

    def brought(self, keys: mx.array, new: int, seen: int, position: int | mx.array) -> mx.array:
        """Turn kept keys (B, H, K, head_dim), as a cache gives them, to the frequencies of the context that sees them.

        The cache had seen `seen` tokens before the `new` ones, the first of which has `position`.
        """
        if not self._changes:
            return keys
        return self._by_row(position, new, lambda periods: self._further(keys, new, seen, position, periods))

    def _further(self, keys: mx.array, new: int, seen: int, position: int | mx.array, periods: mx.array) -> mx.array:
        if periods is self._constant:
            return keys
        # What turns as often in both has an endless period: it stays.
        further = 1.0 / (1.0 / periods - 1.0 / self._constant)
        held, stop = keys.shape[2], position + new
        # For one token a full ring gives its slots as they stand, p in slot p mod held; else keys come in order.
        first = (seen + 1) % held if new == 1 else 0
        newer = self._turned(keys[:, :, :first], stop - first, further)
        older = self._turned(keys[:, :, first:], stop - held, further)
        return mx.concatenate([newer, older], axis=2).astype(keys.dtype)

    def _turned(self, heads: mx.array, offset: int | mx.array, periods: mx.array) -> mx.array:
        return mx.fast.rope(
            heads.astype(mx.float32) if self._widens else heads,
            self._dims,
            traditional=self._interleaved,
            base=None,
            scale=1.0,
            offset=offset,
            freqs=periods,
        )

    def _finished(self, turned: mx.array, dtype: mx.Dtype) -> mx.array:
        """Give what has turned times its factors, if any, in the dtype that it came in."""
        scaled = turned if self._factors is None else turned * self._factors
        return scaled.astype(dtype) if self._widens else scaled

    def _by_row(self, position: int | mx.array, new: int, turn: Callable[[mx.array], mx.array]) -> mx.array:
        """Give what `turn` makes by the periods of each row's own context, the first of `new` tokens at `position`."""
        starts = [position] if isinstance(position, int) else cast("list[int]", position.tolist())
        contexts = [self._config.kind.context(self._config.rotation, max(start + new, _NEAR)) for start in starts]
        self._latest = {each: self._for(each) for each in contexts}
        turned = {each: turn(periods) for each, periods in self._latest.items()}
        if len(turned) == 1:
            return turned[contexts[0]]
        return mx.concatenate([turned[each][row : row + 1] for row, each in enumerate(contexts)])

    def _for(self, context: int) -> mx.array:
        """Give the periods for a context; the layers of one step find those that the first of them has worked out."""
        if context == self._config.rotation.trained:
            return self._constant
        known = self._latest.get(context)
        return self._periods(context) if known is None else known

    def _periods(self, length: int) -> mx.array:
        """Give positions a radian, (dims / 2,): what MLX takes for frequencies."""
        frequencies = self._config.kind.frequencies(self._config.rotation, length)
        # A pair that does not turn has an endless period.
        turning = frequencies > 0
        frequencies[~turning] = 1.0
        return mx.where(mx.array(turning.tolist()), mx.array((1.0 / frequencies).astype("float32")), mx.inf)

    def _factors_of(self, head_dim: int) -> mx.array | None:
        factor = self._config.kind.attention_factor(self._config.rotation)
        if factor == 1.0:
            return None
        dims = self._config.rotation.dims
        return mx.where(mx.arange(head_dim) < dims, factor, 1.0).astype(mx.float32)


def interleaved(config: RopeConfig, head_dim: int) -> Rope:
    """Give a rope that turns neighbours against each other."""
    return Rope(config, head_dim, interleaved=True)
