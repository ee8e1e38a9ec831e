"""Ternary numbers of BitNet: four codes of two bits a byte, a byte for rows a quarter of the matrix apart.

Source: BitNet b1.58 as Transformers publishes it. Codes are one above -1, 0 and 1; the scale of all is a divisor or a
factor, by the layer that the config names.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weightloom.engine.codings.affine import affine_specs, native_group, scales_and_biases
from weightloom.engine.codings.checks import SCALES, check_matrix, check_part
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.codings.words import pack
from weightloom.engine.errors import PlanError
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

BITS = 2
_IN_BYTE = 8 // BITS
_LARGEST = 2


@dataclass(frozen=True, slots=True)
class Ternary:
    """Bytes (rows / 4, columns) and one scale; `divides`: a number is divided by it, else multiplied."""

    divides: bool
    row_step: int = 1 << 30
    exact: bool = False

    def shape(self, specs: Specs) -> Shape:
        """Give (rows, columns)."""
        codes, scale = specs
        check_part("codes", codes, ("U8",))
        check_matrix("codes", codes)
        check_part("scale", scale, SCALES)
        if len(codes.shape) != 2 or prod(scale.shape) != 1:
            raise PlanError(f"a scale of {scale} for codes of {codes}", expected="a matrix of codes, and one scale")
        return _IN_BYTE * codes.shape[0], codes.shape[1]

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """All of them: the rows of a byte lie apart."""
        return arrays

    def values(self, arrays: Arrays) -> mx.array:
        """Give the code less one, by the scale."""
        import mlx.core as mx

        factors, biases = self._affine(arrays[1], 1, 1)
        return _codes(arrays[0]).astype(mx.float32) * factors + biases

    def kept(self, specs: Specs) -> Specs:
        """Give MLX's affine form; PlanError for rows that do not divide into groups."""
        return affine_specs(self.shape(specs), BITS, self.group(specs))

    def group(self, specs: Specs) -> int:
        """Give MLX's group; PlanError where it has none that fits."""
        columns = self.shape(specs)[1]
        return native_group(columns, columns)

    def keep(self, arrays: Arrays) -> Arrays:
        """Put the rows in their order, and the codes along them."""
        found = _codes(arrays[0])
        rows, columns = found.shape
        return pack(found, BITS), *self._affine(arrays[1], rows, columns // native_group(columns, columns))

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: groups may have scales of their own."""
        raise PlanError("scales of groups", expected="the source's own bytes")

    def _affine(self, scale: mx.array, rows: int, groups: int) -> tuple[mx.array, mx.array]:
        import mlx.core as mx

        found = scale.astype(mx.float32).reshape(1, 1)
        each = mx.repeat(1.0 / found if self.divides else found, rows, axis=0)
        return scales_and_biases(each, mx.array(1.0), groups)


def _codes(packed: mx.array) -> mx.array:
    """Give (rows, columns) codes, uint32; PlanError for the one that stands for nothing."""
    import mlx.core as mx

    places = [(packed >> (BITS * place)) & ((1 << BITS) - 1) for place in range(_IN_BYTE)]
    found = mx.concatenate(places, axis=0).astype(mx.uint32)
    if mx.any(found > _LARGEST).item():
        raise PlanError(
            "codes are not all ternary",
            expected="0, 1 or 2 in each two bits",
            hint="get the checkpoint anew: the file is damaged, or quantization_config belongs to another",
        )
    return found
