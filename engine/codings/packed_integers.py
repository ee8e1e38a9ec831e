"""Integers as compressed-tensors packs them: along a row in words of 32 bits, stored half of their range above 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.codings.affine import (
    affine_specs,
    affine_values,
    check_bits,
    check_order,
    native_group,
    numbers_in,
    scales_and_biases,
    words_for,
)
from weightloom.engine.codings.checks import SCALES, check_matrix, check_part
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.codings.words import WORD, unpack
from weightloom.engine.errors import PlanError
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

_WORDS = ("I32", "U32")


@dataclass(frozen=True, slots=True)
class PackedIntegers:
    """Words (rows, columns * bits / 32), scales (rows, groups), the shape, then zeros and g_idx where there are such.

    `zeros`: zero points (rows * bits / 32, groups), packed along the rows; else the middle of the range. `indexed`:
    the group of each column; MLX's form needs them in order.
    """

    bits: int
    zeros: bool
    indexed: bool
    row_step: int = 1 << 30
    exact: bool = False

    def shape(self, specs: Specs) -> Shape:
        """Give rows and columns."""
        check_bits(self.bits)
        words, scales, shape, *more = specs
        check_part("codes", words, _WORDS)
        check_matrix("codes", words)
        rows, columns = words.shape[0], numbers_in(words, 1, self.bits)
        check_part("shape", shape, ("I64", "I32"), (2,))
        check_part("scales", scales, SCALES)
        if len(scales.shape) != 2 or scales.shape[0] != rows or not scales.shape[1] or columns % scales.shape[1]:
            raise PlanError(f"scales of {scales} for {rows} rows of {columns}", expected="one for each group of a row")
        if self.zeros:
            check_part("zero points", more.pop(0), _WORDS, (words_for(rows, self.bits), scales.shape[1]))
        if self.indexed:
            check_part("g_idx", more.pop(0), ("I32", "I64"), (columns,))
        return rows, columns

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """All of them: zero points lie across the rows."""
        return arrays

    def values(self, arrays: Arrays) -> mx.array:
        """Give scale * (code - zero), each column by its group."""
        import mlx.core as mx

        words, scales, biases = self._affine(arrays, 1)
        if not self.indexed:
            return affine_values(words, scales, biases, self.bits)
        index = arrays[-1].astype(mx.int32)
        if mx.any((index < 0) | (index >= scales.shape[1])).item():
            raise PlanError("g_idx has groups that are not there", expected=f"0 to {scales.shape[1] - 1}")
        return unpack(words, self.bits).astype(mx.float32) * scales[:, index] + biases[:, index]

    def kept(self, specs: Specs) -> Specs:
        """Give MLX's affine form; PlanError for groups that MLX has none for."""
        shape = self.shape(specs)
        return affine_specs(shape, self.bits, self.group(specs))

    def group(self, specs: Specs) -> int:
        """Give MLX's group; PlanError where it has none that fits."""
        columns = self.shape(specs)[1]
        return native_group(columns // specs[1].shape[1], columns)

    def keep(self, arrays: Arrays) -> Arrays:
        """Take the words as they are."""
        words, scales = arrays[:2]
        columns = words.shape[1] * WORD // self.bits
        size = columns // scales.shape[1]
        if self.indexed:
            check_order(arrays[-1], size)
        return self._affine(arrays, size // native_group(size, columns))

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: zeros cannot be told from biases exactly."""
        raise PlanError("biases", expected="the source's own bytes")

    def _affine(self, arrays: Arrays, repeats: int) -> tuple[mx.array, mx.array, mx.array]:
        import mlx.core as mx

        words, scales, shape, *more = arrays
        found = [words.shape[0], words.shape[1] * WORD // self.bits]
        if shape.tolist() != found:
            raise PlanError(f"the shape says {shape.tolist()}", expected=str(found), hint="load it with another tool")
        zeros = unpack(more[0].T, self.bits).T[: found[0]] if self.zeros else mx.array(float(1 << (self.bits - 1)))
        return words.view(mx.uint32), *scales_and_biases(scales, zeros, repeats)


@dataclass(frozen=True, slots=True)
class SignedBytes:
    """Bytes with a sign (rows, columns), and a scale for each row or for all."""

    row_step: int = 1
    exact: bool = False

    def shape(self, specs: Specs) -> Shape:
        """Give rows and columns."""
        codes, scales = specs
        check_part("codes", codes, ("I8",))
        check_matrix("codes", codes)
        check_part("scales", scales, SCALES)
        if scales.shape not in ((codes.shape[0], 1), (codes.shape[0],), (1,), ()):
            raise PlanError(f"scales of {scales} for codes of {codes}", expected=f"one a row: {[codes.shape[0], 1]}")
        return codes.shape

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """Cut codes, and scales that are of rows."""
        codes, scales = arrays
        return codes[start:stop], scales if scales.size == 1 else scales.reshape(-1, 1)[start:stop]

    def values(self, arrays: Arrays) -> mx.array:
        """Give code times scale."""
        import mlx.core as mx

        codes, scales = arrays
        factors, _ = scales_and_biases(scales.reshape(-1, 1), mx.array(0.0), 1)
        return codes.astype(mx.float32) * factors

    def kept(self, specs: Specs) -> Specs:
        """Give MLX's affine form; PlanError for rows that do not divide into groups."""
        shape = self.shape(specs)
        return affine_specs(shape, 8, self.group(specs))

    def group(self, specs: Specs) -> int:
        """Give MLX's group; PlanError where it has none that fits."""
        columns = self.shape(specs)[1]
        return native_group(columns, columns)

    def keep(self, arrays: Arrays) -> Arrays:
        """Count the codes from 0."""
        import mlx.core as mx

        codes, scales = arrays
        rows, columns = codes.shape
        each = mx.broadcast_to(scales.reshape(-1, 1), (rows, 1))
        factors, biases = scales_and_biases(each, mx.array(128.0), columns // native_group(columns, columns))
        return (codes.view(mx.uint8) ^ 128).view(mx.uint32), mx.contiguous(factors), mx.contiguous(biases)

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: scales of rows are repeated."""
        raise PlanError("biases", expected="the source's own bytes")
