"""GPTQ: words along the inputs, a scale and a zero point for each group of inputs, and which group each input is of.

Source: AutoGPTQ's kernels. The first version of the form stores zero points less one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.codings.affine import (
    affine_specs,
    check_bits,
    check_order,
    native_group,
    numbers_in,
    scales_and_biases,
    words_for,
)
from weightloom.engine.codings.checks import SCALES, check_matrix, check_part
from weightloom.engine.codings.coding import Arrays
from weightloom.engine.codings.words import unpack
from weightloom.engine.errors import PlanError
from weightloom.engine.views.moves import Specs
from weightloom.engine.views.tiles import Shape

if TYPE_CHECKING:
    import mlx.core as mx

_WORDS = ("I32", "U32")


@dataclass(frozen=True, slots=True)
class Gptq:
    """Words (inputs * bits / 32, outputs), zeros (groups, outputs * bits / 32), scales (groups, outputs), g_idx.

    `g_idx` is the group of each input; `group` inputs are of one, or all for -1. `less_one`: zeros are stored less
    one. Without `ordered` the inputs of a group may lie apart, and the matrix can only be decoded.
    """

    bits: int
    group: int
    less_one: bool
    ordered: bool = True
    row_step: int = 1 << 30
    exact: bool = False

    def shape(self, specs: Specs) -> Shape:
        """Give (outputs, inputs)."""
        check_bits(self.bits)
        words, zeros, scales, index = specs
        check_part("codes", words, _WORDS)
        check_matrix("codes", words)
        inputs, outputs = numbers_in(words, 0, self.bits), words.shape[1]
        size = inputs if self.group == -1 else self.group
        if size < 1 or (self.ordered and inputs % size):
            raise PlanError(f"codes of {words} in groups of {size}", expected="groups that divide the inputs")
        groups = -(-inputs // size)
        check_part("zeros", zeros, _WORDS, (groups, words_for(outputs, self.bits)))
        check_part("scales", scales, SCALES, (groups, outputs))
        check_part("g_idx", index, ("I32", "I64"), (inputs,))
        return outputs, inputs

    def rows(self, arrays: Arrays, start: int, stop: int) -> Arrays:
        """All of them: rows lie across the words."""
        return arrays

    def values(self, arrays: Arrays) -> mx.array:
        """Give scale * (code - zero), each input by the group that it is of."""
        import mlx.core as mx

        words, zeros, scales, index = arrays
        if mx.any((index < 0) | (index >= scales.shape[0])).item():
            raise PlanError("g_idx has numbers of groups that are not there", expected=f"0 to {scales.shape[0] - 1}")
        factors, biases = scales_and_biases(scales, self._zeros(zeros, scales), 1)
        codes = unpack(words.T, self.bits).astype(mx.float32)
        return codes * factors[index].T + biases[index].T

    def kept(self, specs: Specs) -> Specs:
        """Give MLX's affine form; PlanError for groups that MLX has none for."""
        shape = self.shape(specs)
        return affine_specs(shape, self.bits, self.native(shape[-1]))

    def native(self, inputs: int) -> int:
        """Give MLX's group; PlanError where it has none that fits."""
        return native_group(inputs if self.group == -1 else self.group, inputs)

    def keep(self, arrays: Arrays) -> Arrays:
        """Turn words and scales round; PlanError where the inputs of a group lie apart."""
        import mlx.core as mx

        words, zeros, scales, index = arrays
        inputs = index.shape[0]
        size = inputs if self.group == -1 else self.group
        check_order(index, size)
        factors, biases = scales_and_biases(scales.T, self._zeros(zeros, scales).T, size // native_group(size, inputs))
        return mx.contiguous(words.T).view(mx.uint32), factors, biases

    def back(self, arrays: Arrays, specs: Specs) -> Arrays:
        """There is none: zeros cannot be told from biases exactly."""
        raise PlanError("biases", expected="the source's own bytes")

    def _zeros(self, zeros: mx.array, scales: mx.array) -> mx.array:
        return unpack(zeros, self.bits)[:, : scales.shape[1]] + (1 if self.less_one else 0)
