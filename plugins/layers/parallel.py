"""Layers of one rank of several: what each holds is a part, and what they give is the whole.

A linear layer cut by its outputs needs nothing of its own: it is a smaller linear layer. Cut by its inputs, what the
ranks make is summed (arXiv 1909.08053, section 3). Rows of a vocabulary are looked up where they are, and scored
where they are.
"""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.experts import Experts, Mix, weighted_sum
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.layers.scaled import ScaledEmbedding, ScaledLinear


class RowLinear(nn.Linear):
    """A linear layer of which each rank has some of the inputs; the bias is whole, and added once."""

    def __init__(self, inputs: int, outputs: int, bias: bool, group: mx.distributed.Group) -> None:
        super().__init__(inputs, outputs, bias)
        self._group = group

    def __call__(self, x: mx.array) -> mx.array:
        """(..., this rank's inputs) -> (..., outputs), the same on all ranks."""
        made = mx.distributed.all_sum(x @ self.weight.T, group=self._group)
        return made + self.bias if "bias" in self else made


class QuantizedRowLinear(nn.QuantizedLinear):
    """The same, packed."""

    def __init__(self, sizes: tuple[int, int], bias: bool, how: Quantization, group: mx.distributed.Group) -> None:
        super().__init__(*sizes, bias, how.group_size, how.bits, how.mode)
        self._group = group

    def __call__(self, x: mx.array) -> mx.array:
        """(..., this rank's inputs) -> (..., outputs), the same on all ranks."""
        made = mx.quantized_matmul(
            x,
            self.weight,
            scales=self.scales,
            biases=self.get("biases"),
            group_size=self.group_size,
            bits=self.bits,
            mode=self.mode,
        )
        made = mx.distributed.all_sum(made, group=self._group)
        return made + self.bias if "bias" in self else made


class ScaledRowLinear(ScaledLinear):
    """The same, its rows with a factor each."""

    def __init__(self, sizes: tuple[int, int], bias: bool, how: Quantization, group: mx.distributed.Group) -> None:
        super().__init__(*sizes, bias, how.group_size, how.bits, how.mode)
        self._group = group

    def __call__(self, x: mx.array) -> mx.array:
        """(..., this rank's inputs) -> (..., outputs), the same on all ranks."""
        made = mx.distributed.all_sum(self.product(x), group=self._group)
        return made + self.bias if "bias" in self else made


def whole_scores(part: mx.array, group: mx.distributed.Group) -> mx.array:
    """Put scores of all ranks' rows of a vocabulary side by side: (..., rows) -> (..., rows of all)."""
    gathered = mx.distributed.all_gather(part[None], group=group)
    return mx.moveaxis(gathered, 0, -2).flatten(-2)


def own_rows(tokens: mx.array, rows: int, group: mx.distributed.Group) -> tuple[mx.array, mx.array]:
    """Give, for tokens, the row in this rank's part of a vocabulary (0 for others'), and whether it is in it."""
    local = tokens - group.rank() * rows
    inside = (local >= 0) & (local < rows)
    return mx.where(inside, local, 0), inside


class _WholeScores(nn.Module):
    """Before a linear layer in the bases: what it scores is that of all ranks."""

    _group: mx.distributed.Group

    def __call__(self, x: mx.array) -> mx.array:
        """(..., inputs) -> (..., vocab), the same on all ranks."""
        return whole_scores(super().__call__(x), self._group)


class VocabLinear(_WholeScores, nn.Linear):
    """A head of which each rank scores some of the tokens."""

    def __init__(self, inputs: int, outputs: int, bias: bool, group: mx.distributed.Group) -> None:
        super().__init__(inputs, outputs, bias)
        self._group = group


class QuantizedVocabLinear(_WholeScores, nn.QuantizedLinear):
    """The same, packed."""

    def __init__(self, sizes: tuple[int, int], bias: bool, how: Quantization, group: mx.distributed.Group) -> None:
        super().__init__(*sizes, bias, how.group_size, how.bits, how.mode)
        self._group = group


class ScaledVocabLinear(_WholeScores, ScaledLinear):
    """The same, its rows with a factor each."""

    def __init__(self, sizes: tuple[int, int], bias: bool, how: Quantization, group: mx.distributed.Group) -> None:
        super().__init__(*sizes, bias, how.group_size, how.bits, how.mode)
        self._group = group


class _SomeRows(nn.Module):
    """Before an embedding in the bases: rows are looked up where they are."""

    weight: mx.array
    _group: mx.distributed.Group

    def __call__(self, tokens: mx.array) -> mx.array:
        """(...) -> (..., size), the same on all ranks."""
        local, inside = own_rows(tokens, self.weight.shape[0], self._group)
        found = mx.where(inside[..., None], super().__call__(local), 0)
        return mx.distributed.all_sum(found, group=self._group)


class VocabEmbedding(_SomeRows, nn.Embedding):
    """An embedding of which each rank has some of the rows."""

    def __init__(self, rows: int, size: int, group: mx.distributed.Group) -> None:
        super().__init__(rows, size)
        self._group = group

    def as_linear(self, x: mx.array) -> mx.array:
        """(..., size) -> (..., vocab), the same on all ranks."""
        return whole_scores(super().as_linear(x), self._group)


class QuantizedVocabEmbedding(_SomeRows, nn.QuantizedEmbedding):
    """The same, packed."""

    def __init__(self, sizes: tuple[int, int], how: Quantization, group: mx.distributed.Group) -> None:
        super().__init__(*sizes, how.group_size, how.bits, how.mode)
        self._group = group

    def as_linear(self, x: mx.array) -> mx.array:
        """(..., size) -> (..., vocab), the same on all ranks."""
        return whole_scores(super().as_linear(x), self._group)


class ScaledVocabEmbedding(_SomeRows, ScaledEmbedding):
    """The same, its rows with a factor each."""

    def __init__(self, sizes: tuple[int, int], how: Quantization, group: mx.distributed.Group) -> None:
        super().__init__(*sizes, how.group_size, how.bits, how.mode)
        self._group = group

    def as_linear(self, x: mx.array) -> mx.array:
        """(..., size) -> (..., vocab), the same on all ranks."""
        return whole_scores(super().as_linear(x), self._group)


def sliced(group: mx.distributed.Group) -> Mix:
    """Give how experts are put together of which each rank has a slice of every one, none with biases."""

    def mix(experts: Experts, tokens: mx.array, chosen: mx.array, weights: mx.array) -> mx.array:
        return mx.distributed.all_sum(weighted_sum(experts, tokens, chosen, weights).astype(tokens.dtype), group=group)

    return mix


def shared_out(group: mx.distributed.Group) -> Mix:
    """Give how experts are put together of which each rank has some, whole: it does its own share of every token's."""

    def mix(experts: Experts, tokens: mx.array, chosen: mx.array, weights: mx.array) -> mx.array:
        local, inside = own_rows(chosen, experts.down_proj.shape[0], group)
        own = weighted_sum(experts, tokens, local, mx.where(inside, weights, 0))
        return mx.distributed.all_sum(own, group=group)

    return mix
