"""MLX's affine packing, both ways: codes of a few bits, with a scale and a bias for each group of a row.

Format: ml-explore/mlx, `quantize`. A value is `scale * code + bias`; the codes of a row are one stream of bits, the
lowest first, in words of 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx

BITS = (2, 3, 4, 5, 6, 8)
_WORD = 32
_SCALES = ("F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class Affine:
    """How a matrix, or a stack of them, is packed: bits a code, and how many codes of a row share a scale."""

    bits: int
    group_size: int

    def __str__(self) -> str:
        return f"{self.bits} bits in groups of {self.group_size}"

    def dense(self, words: TensorSpec, scales: TensorSpec, biases: TensorSpec) -> TensorSpec:
        """Give the spec unpacked, of the scales' dtype; PlanError for what is not packed like this."""
        shape = (*words.shape[:-1], words.shape[-1] * _WORD // self.bits)
        grouped = (*shape[:-1], shape[-1] // self.group_size)
        fits = words.dtype == "U32" and scales.dtype in _SCALES and scales.shape == grouped and scales == biases
        if not fits or shape[-1] % self.group_size or words.shape[-1] * _WORD % self.bits:
            raise PlanError(
                f"words of {words}, scales of {scales} and biases of {biases}",
                expected=f"U32 words with {self}, and floats for each group",
            )
        return TensorSpec(scales.dtype, shape)

    def packed(self, dense: TensorSpec) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        """Give the specs of words, scales and biases of a dense one; PlanError where groups do not divide its rows."""
        columns = dense.shape[-1]
        if columns % self.group_size or columns * self.bits % _WORD:
            raise PlanError(f"rows of {columns}", expected=f"rows that divide into {self}")
        beside = TensorSpec(dense.dtype, (*dense.shape[:-1], columns // self.group_size))
        return TensorSpec("U32", (*dense.shape[:-1], columns * self.bits // _WORD)), beside, beside

    def unpack(self, words: mx.array, scales: mx.array, biases: mx.array) -> mx.array:
        """Words (..., W) uint32, scales and biases (..., G) -> values (..., columns), float32.

        `scales` and `biases` may be of any float dtype.
        """
        import mlx.core as mx

        grouped = self._grouped(self.codes(words))
        values = scales.astype(mx.float32)[..., None] * grouped + biases.astype(mx.float32)[..., None]
        return values.reshape(*words.shape[:-1], -1)

    def codes(self, words: mx.array) -> mx.array:
        """Words (..., W) uint32 -> codes (..., columns), float32."""
        import mlx.core as mx

        shape = (*words.shape[:-1], words.shape[-1] * _WORD // self.bits // self.group_size)
        ones, zeros = mx.ones(shape), mx.zeros(shape)
        return mx.dequantize(words, ones, zeros, self.group_size, self.bits)

    def words(self, codes: mx.array) -> mx.array:
        """Codes (..., columns), whole numbers of any dtype -> words (..., W) uint32."""
        import mlx.core as mx

        blocks = codes.astype(mx.uint32).reshape(*codes.shape[:-1], -1, _WORD)
        found = [mx.zeros(blocks.shape[:-1], mx.uint32) for _ in range(self.bits)]
        for place in range(_WORD):
            word, shift = divmod(place * self.bits, _WORD)
            found[word] = found[word] | (blocks[..., place] << shift)
            if shift + self.bits > _WORD:
                found[word + 1] = found[word + 1] | (blocks[..., place] >> (_WORD - shift))
        return mx.stack(found, axis=-1).reshape(*codes.shape[:-1], -1)

    def grid(self, values: mx.array, dtype: mx.Dtype) -> tuple[mx.array, mx.array]:
        """Values (..., columns) float32 -> scales and biases (..., G) as MLX chooses them, in a dtype."""
        import mlx.core as mx

        _, scales, biases = mx.quantize(values, self.group_size, self.bits)
        return scales.astype(dtype), biases.astype(dtype)

    def nearest(self, values: mx.array, scales: mx.array, biases: mx.array) -> mx.array:
        """Values (..., columns) float32 -> the codes (..., G, group_size), float32, that come nearest on a grid.

        A group whose scale is 0 has code 0 everywhere.
        """
        import mlx.core as mx

        step, start = scales.astype(mx.float32)[..., None], biases.astype(mx.float32)[..., None]
        codes = (self._grouped(values) - start) / mx.where(step == 0, 1, step)
        return mx.where(step == 0, 0, mx.clip(mx.round(codes), 0, 2**self.bits - 1))

    def errors(self, values: mx.array, codes: mx.array, scales: mx.array, biases: mx.array) -> mx.array:
        """Give the sum of squared errors of each group, (..., G) float32; `codes` as `nearest` gives them."""
        import mlx.core as mx

        made = scales.astype(mx.float32)[..., None] * codes + biases.astype(mx.float32)[..., None]
        return mx.square(self._grouped(values) - made).sum(axis=-1)

    def _grouped(self, values: mx.array) -> mx.array:
        return values.reshape(*values.shape[:-1], -1, self.group_size)
