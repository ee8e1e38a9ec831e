"""Linear layers on one input, computed as one product: their rows lie one after another in one array.

The layers stay what they are, and their parameters are views of that array; so names, plans, saves and adapters know
nothing of it. Where a layer or one of its arrays has been replaced since, the layers are computed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten

_ARRAYS = ("weight", "scales", "biases", "bias")


class SideBySide:
    """Linear layers whose rows lie one after another."""

    def __init__(self, layers: Sequence[nn.Linear | nn.QuantizedLinear]) -> None:
        self._layers = tuple(layers)
        self._rows = [sum(each.weight.shape[0] for each in layers[:count]) for count in range(1, len(layers))]
        names = [name for name in _ARRAYS if name in layers[0]]
        self._whole = {name: mx.concatenate([each[name] for each in layers]) for name in names}
        mx.eval(self._whole)
        for name, whole in self._whole.items():
            for layer, part in zip(layers, mx.split(whole, self._rows), strict=True):
                layer.update(tree_unflatten([(name, part)]))
        mx.eval([layer.parameters() for layer in layers])
        self._places = [layer for layer in layers for _ in names]
        self._names = names * len(layers)
        self._parts = list(map(dict.get, self._places, self._names))

    def holds(self, *layers: nn.Module) -> bool:
        """Say whether these are still the same layers with the same arrays."""
        same = all(map(is_, layers, self._layers))
        return same and all(map(is_, map(dict.get, self._places, self._names), self._parts))

    def __call__(self, x: mx.array) -> list[mx.array]:
        """(..., inputs) -> what each layer makes of it, (..., its rows)."""
        first = self._layers[0]
        bias = self._whole.get("bias")
        if isinstance(first, nn.QuantizedLinear):
            how = {"group_size": first.group_size, "bits": first.bits, "mode": first.mode}
            parts = (self._whole["weight"], self._whole["scales"], self._whole.get("biases"))
            made = mx.quantized_matmul(x, *parts, transpose=True, **how)
            made = made if bias is None else made + bias
        else:
            weight = self._whole["weight"].T
            made = x @ weight if bias is None else mx.addmm(bias, x, weight)
        return list(mx.split(made, self._rows, axis=-1))


def side_by_side(*layers: nn.Module) -> SideBySide | None:
    """Put the rows of linear layers together; None where they are not of one kind, or not as stored."""
    kinds = {type(each) for each in layers}
    if kinds not in ({nn.Linear}, {nn.QuantizedLinear}):
        return None
    arrays = {
        tuple((name, each[name].shape[1:], each[name].dtype) for name in _ARRAYS if name in each) for each in layers
    }
    ways = {
        (getattr(each, "group_size", None), getattr(each, "bits", None), getattr(each, "mode", None)) for each in layers
    }
    return SideBySide(layers) if len(arrays) == len(ways) == 1 else None  # type: ignore[arg-type]
