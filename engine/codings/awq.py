"""AWQ: words along the outputs, whose places hold them in an order of their own; scales and zero points for groups.

Source: AutoAWQ's GEMM kernels, for which even numbers stand in the lower half of a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.codings.affine import affine_specs, native_group, scales_and_biases
from weightloom.engine.codings.checks import SCALES, check_matrix, check_part
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.codings.words import WORD, pack, unpack
from weightloom.engine.errors import PlanError
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

BITS = 4
_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_WORDS = ("I32", "U32")


@dataclass(frozen=True, slots=True)
class Awq:
    """Words (inputs, outputs / 8), zeros (groups, outputs / 8), scales (groups, outputs); `group` -1: all inputs."""

    group: int
    row_step: int = 1 << 30
    exact: bool = False

    def shape(self, specs: Specs) -> Shape:
        """Give (outputs, inputs)."""
        words, zeros, scales = specs
        check_part("codes", words, _WORDS)
        check_matrix("codes", words)
        inputs, outputs = words.shape[0], words.shape[1] * WORD // BITS
        size = inputs if self.group == -1 else self.group
        if size < 1 or inputs % size:
            raise PlanError(f"codes of {words} in groups of {size}", expected="groups that divide the inputs")
        check_part("zeros", zeros, _WORDS, (inputs // size, words.shape[1]))
        check_part("scales", scales, SCALES, (inputs // size, outputs))
        return outputs, inputs

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """All of them: rows lie across the words."""
        return arrays

    def values(self, arrays: Arrays) -> mx.array:
        """Give scale * (code - zero)."""
        import mlx.core as mx

        words, zeros, scales = arrays
        repeats = words.shape[0] // scales.shape[0]
        factors, biases = scales_and_biases(scales.T, unpack(zeros, BITS, _ORDER).T, repeats)
        return unpack(words, BITS, _ORDER).T.astype(mx.float32) * factors + biases

    def kept(self, specs: Specs) -> Specs:
        """Give MLX's affine form; PlanError for groups that MLX has none for."""
        shape = self.shape(specs)
        return affine_specs(shape, BITS, self.native(shape[-1]))

    def native(self, inputs: int) -> int:
        """Give MLX's group; PlanError where it has none that fits."""
        return native_group(inputs if self.group == -1 else self.group, inputs)

    def keep(self, arrays: Arrays) -> Arrays:
        """Put the codes in their own order, along the inputs."""
        words, zeros, scales = arrays
        inputs = words.shape[0]
        size = inputs // scales.shape[0]
        repeats = size // native_group(size, inputs)
        factors, biases = scales_and_biases(scales.T, unpack(zeros, BITS, _ORDER).T, repeats)
        return pack(unpack(words, BITS, _ORDER).T, BITS), factors, biases

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: zeros cannot be told from biases exactly."""
        raise PlanError("biases", expected="the source's own bytes")
