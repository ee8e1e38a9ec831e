"""Packed matrices, or stacks of them, of which some values are to be others: each group as near as it can come.

In affine mode a group keeps its scale and bias where that is nearest, and gets new ones elsewhere; in the other modes
it keeps its words, or is packed anew. So no group is further from what is wanted than it was, and one that does not
change stays as it is, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weightloom.engine.quantizing.affine import Grid, codes_of, grid_for, in_groups, words_of
from weightloom.engine.quantizing.quantization import AFFINE, Quantization

if TYPE_CHECKING:
    import mlx.core as mx

    Parts = tuple[mx.array, ...]
    """Words (..., W) uint32, scales (..., G) and, in affine mode, biases (..., G)."""


def floats_of(parts: Parts, how: Quantization) -> mx.array:
    """Give the values (..., columns), float32."""
    import mlx.core as mx

    if how.mode == AFFINE:
        return Grid(how, parts[1], parts[2]).values(codes_of(parts[0], how))
    return mx.dequantize(parts[0], parts[1], None, how.group_size, how.bits, how.mode).astype(mx.float32)


def packed(wanted: mx.array, how: Quantization, dtype: mx.Dtype) -> Parts:
    """Pack values (..., columns) float32 anew; scales and biases of affine mode get a dtype."""
    import mlx.core as mx

    if how.mode != AFFINE:
        return tuple(mx.quantize(wanted, how.group_size, how.bits, how.mode))
    grid = grid_for(wanted, how, dtype)
    return words_of(grid.nearest(wanted), how), grid.scales, grid.biases


def refitted(before: Parts, wanted: mx.array, how: Quantization) -> Parts:
    """Pack `wanted` (..., columns) float32 in the form that `before` has."""
    return _on_either_grid(before, wanted, how) if how.mode == AFFINE else _kept_or_anew(before, wanted, how)


def _on_either_grid(before: Parts, wanted: mx.array, how: Quantization) -> Parts:
    import mlx.core as mx

    words, scales, biases = before
    old, new = Grid(how, scales, biases), grid_for(wanted, how, scales.dtype)
    # A group of one value alone has scale 0, and any code: it keeps its own.
    own = mx.where((scales == 0)[..., None], codes_of(words, how), old.nearest(wanted))
    other = new.nearest(wanted)
    better = _errors(wanted, new.values(other), how) < _errors(wanted, old.values(own), how)
    codes = mx.where(better[..., None], other, own)
    return words_of(codes, how), mx.where(better, new.scales, scales), mx.where(better, new.biases, biases)


def _kept_or_anew(before: Parts, wanted: mx.array, how: Quantization) -> Parts:
    import mlx.core as mx

    new = packed(wanted, how, wanted.dtype)
    old_error, new_error = (_errors(wanted, floats_of(parts, how), how) for parts in (before, new))
    better = new_error < old_error
    chosen = mx.where(better[..., None], _words_in_groups(new, better), _words_in_groups(before, better))
    return chosen.reshape(before[0].shape), mx.where(better, new[1], before[1])


def _words_in_groups(parts: Parts, groups: mx.array) -> mx.array:
    """The codes of a group fill whole words in these modes."""
    return parts[0].reshape(*groups.shape, -1)


def _errors(wanted: mx.array, got: mx.array, how: Quantization) -> mx.array:
    """Give the sum of squared errors of each group, (..., G)."""
    import mlx.core as mx

    return mx.square(in_groups(wanted - got, how)).sum(axis=-1)
