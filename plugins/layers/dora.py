"""Changes of direction and length beside a layer's weight: DoRA, arXiv 2402.09353.

W is to be gain * (W + scale * B @ A), where the gain brings rows, or columns, to the lengths that were trained. What is
added is the difference from W, so that a dial at one half makes half of it, and several add up whatever their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mlx.core as mx

from weightloom.plugins.layers.lora import LowRank

if TYPE_CHECKING:
    from weightloom.engine.surgery.lengths import Lengths
    from weightloom.plugins.layers.terms import Made, Term


@dataclass(frozen=True, slots=True, eq=False)
class Gain:
    """A product, and what brings it and the weight to their lengths."""

    product: LowRank
    gain: mx.array

    @property
    def acts(self) -> bool:
        """Whether it adds anything now."""
        return self.product.dial.scale != 0


@dataclass(frozen=True, slots=True, eq=False)
class RowGain(Gain):
    """A change whose gain is one a row, (..., rows), float32."""

    def times(self, x: mx.array, made: Made) -> mx.array:
        """Tokens (..., columns) -> what is added to the layer's (..., rows)."""
        return self._joined(self.gain, self.product.times(x, made), made)

    def rows(self, tokens: mx.array, made: Made) -> mx.array:
        """Tokens (...) int -> what is added to the embeddings (..., columns)."""
        return self._joined(self.gain[tokens][..., None], self.product.rows(tokens, made), made)

    def times_chosen(self, x: mx.array, rows: mx.array, ordered: bool, made: Made) -> mx.array:
        """Tokens (M, 1, columns) and the matrix of a stack that each takes, (M,) -> what is added, (M, 1, rows)."""
        added = self.product.times_chosen(x, rows, ordered, made)
        return self._joined(self.gain[rows][:, None, :], added, made)

    def _joined(self, gain: mx.array, product: mx.array, made: Made) -> mx.array:
        return self.product.dial.scale * (gain - 1) * made.result + gain * product


@dataclass(frozen=True, slots=True, eq=False)
class ColumnGain(Gain):
    """A change whose gain is one a column, (..., columns), float32: PEFT's of embeddings."""

    def times(self, x: mx.array, made: Made) -> mx.array:
        """Tokens (..., columns) -> what is added to the layer's (..., rows)."""
        return self.product.times(x * self.gain, made) + self._own(x, self.gain, made)

    def rows(self, tokens: mx.array, made: Made) -> mx.array:
        """Tokens (...) int -> what is added to the embeddings (..., columns)."""
        return self.product.dial.scale * (self.gain - 1) * made.result + self.gain * self.product.rows(tokens, made)

    def times_chosen(self, x: mx.array, rows: mx.array, ordered: bool, made: Made) -> mx.array:
        """Tokens (M, 1, columns) and the matrix of a stack that each takes, (M,) -> what is added, (M, 1, rows)."""
        gain = self.gain[rows][:, None, :]
        return self.product.times_chosen(x * gain, rows, ordered, made) + self._own(x, gain, made)

    def _own(self, x: mx.array, gain: mx.array, made: Made) -> mx.array:
        return self.product.dial.scale * made.of(x * (gain - 1))


def decomposed(product: LowRank, lengths: Lengths, weight: mx.array) -> Term:
    """Give the term that brings a weight (..., rows, columns) and a product to lengths; the gain is computed now."""
    changed = weight.astype(mx.float32) + product.scale * (product.b.astype(mx.float32) @ product.a.astype(mx.float32))
    gain = lengths.gain(changed).squeeze(lengths.axis)
    # Else the weight's copy would stay until the first call.
    mx.eval(gain)
    return RowGain(product, gain) if lengths.axis == -1 else ColumnGain(product, gain)
