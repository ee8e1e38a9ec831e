"""MLX's affine packing, both ways: codes of a few bits, with a scale and a bias for each group of a row.

Format: ml-explore/mlx, `quantize`. A value is `scale * code + bias`; the codes of a row are one stream of bits, the
lowest first, in words of 32. A grid is what the scales and biases of a matrix allow. All is computed in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.quantizing.quantization import WORD, Quantization

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Scales and biases (..., G), floats of one dtype, of a matrix that is packed in affine mode."""

    how: Quantization
    scales: mx.array
    biases: mx.array

    def values(self, codes: mx.array) -> mx.array:
        """Codes (..., G, group_size) -> values (..., columns)."""
        import mlx.core as mx

        made = self.scales.astype(mx.float32)[..., None] * codes + self.biases.astype(mx.float32)[..., None]
        return made.reshape(*self.scales.shape[:-1], -1)

    def nearest(self, values: mx.array) -> mx.array:
        """Values (..., columns) -> the codes (..., G, group_size) that come nearest; 0 where the scale is 0."""
        import mlx.core as mx

        step, start = self.scales.astype(mx.float32)[..., None], self.biases.astype(mx.float32)[..., None]
        codes = (in_groups(values, self.how) - start) / mx.where(step == 0, 1, step)
        return mx.where(step == 0, 0, mx.clip(mx.round(codes), 0, 2**self.how.bits - 1))


def grid_for(values: mx.array, how: Quantization, dtype: mx.Dtype) -> Grid:
    """Give the grid that MLX chooses for values (..., columns), in a dtype."""
    import mlx.core as mx

    _, scales, biases = mx.quantize(values, how.group_size, how.bits)
    return Grid(how, scales.astype(dtype), biases.astype(dtype))


def codes_of(words: mx.array, how: Quantization) -> mx.array:
    """Words (..., W) uint32 -> codes (..., G, group_size), float32."""
    import mlx.core as mx

    shape = (*words.shape[:-1], words.shape[-1] * WORD // how.bits // how.group_size)
    return in_groups(mx.dequantize(words, mx.ones(shape), mx.zeros(shape), how.group_size, how.bits), how)


def words_of(codes: mx.array, how: Quantization) -> mx.array:
    """Codes (..., G, group_size), whole numbers of any dtype -> words (..., W) uint32."""
    import mlx.core as mx

    blocks = codes.astype(mx.uint32).reshape(*codes.shape[:-2], -1, WORD)
    found = [mx.zeros(blocks.shape[:-1], mx.uint32) for _ in range(how.bits)]
    for place in range(WORD):
        word, shift = divmod(place * how.bits, WORD)
        found[word] = found[word] | (blocks[..., place] << shift)
        if shift + how.bits > WORD:
            found[word + 1] = found[word + 1] | (blocks[..., place] >> (WORD - shift))
    return mx.stack(found, axis=-1).reshape(*codes.shape[:-2], -1)


def in_groups(values: mx.array, how: Quantization) -> mx.array:
    """(..., columns) -> (..., G, group_size)."""
    return values.reshape(*values.shape[:-1], -1, how.group_size)
