"""Integers with a scale and a zero point for some numbers of a row: what MLX calls affine.

A number is scale * (code - zero). MLX's tensors are words, scales, and biases, which are -scale * zero; in F32 they are
exact, since a zero has few bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weightloom.engine.codings.checks import check_numbers
from weightloom.engine.codings.words import WORD, unpack
from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

GROUPS = (32, 64, 128)
BITS = (2, 3, 4, 5, 6, 8)


def native_group(size: int, columns: int) -> int:
    """Give the largest group that MLX has and that divides a vendor's of `size`; PlanError for none."""
    found = next((group for group in reversed(GROUPS) if size % group == 0 and columns % group == 0), None)
    if found is None:
        raise PlanError(f"groups of {size}", expected="a multiple of 32, 64 or 128", hint="load it dequantized")
    return found


def check_order(index: mx.array, size: int) -> None:
    """Raise PlanError unless groups are of `size` inputs that follow one another."""
    import mlx.core as mx

    if mx.any(index.astype(mx.int32) != mx.arange(index.shape[0]) // size).item():
        raise PlanError(
            "g_idx puts inputs into groups out of order",
            expected="inputs in the order of their groups",
            hint="load it dequantized",
        )


def check_bits(bits: int) -> None:
    """Raise PlanError for a width that MLX has no integers of."""
    if bits not in BITS:
        raise PlanError(f"codes of {bits} bits", expected=" or ".join(map(str, BITS)), hint="load it with another tool")


def numbers_in(words: TensorSpec, axis: int, bits: int) -> int:
    """Give how many numbers lie along an axis of words; PlanError where the last one is not whole."""
    count = words.shape[axis] * WORD
    if count % bits:
        raise PlanError(f"the codes of a quantized weight are {words}", expected=f"whole numbers of {bits} bits")
    return count // bits


def words_for(count: int, bits: int) -> int:
    """Give the words that hold so many numbers, the last one perhaps in part."""
    return -(-count * bits // WORD)


def affine_specs(shape: Shape, bits: int, group: int) -> Specs:
    """Give the specs of MLX's tensors for a matrix."""
    *ahead, columns = shape
    per_group = TensorSpec("F32", (*ahead, columns // group))
    return TensorSpec("U32", (*ahead, columns * bits // WORD)), per_group, per_group


def scales_and_biases(scales: mx.array, zeros: mx.array, repeats: int) -> tuple[mx.array, mx.array]:
    """Give MLX's, in F32, each for `repeats` groups of MLX's; raises PlanError for a scale that is no number."""
    import mlx.core as mx

    wide = check_numbers(scales.astype(mx.float32))
    biases = -wide * zeros.astype(mx.float32)
    return mx.repeat(wide, repeats, axis=-1), mx.repeat(biases, repeats, axis=-1)


def affine_values(words: mx.array, scales: mx.array, biases: mx.array, bits: int) -> mx.array:
    """Decode words (rows, n) with scales and biases (rows, groups) to F32."""
    import mlx.core as mx

    rows, groups = scales.shape
    codes = unpack(words, bits).astype(mx.float32).reshape(rows, groups, -1)
    return (codes * scales[..., None] + biases[..., None]).reshape(rows, -1)
