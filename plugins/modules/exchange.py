"""Parameters that adapters replace as a whole: one array is in place at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError
from weightloom.plugins.modules.adapters import packed_names

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn


@dataclass(frozen=True, eq=False)
class Exchange:
    """A parameter of a layer under `key`: the base's array, and those of adapters by the adapter's name."""

    parameter: str
    layer: nn.Module
    key: str
    base: mx.array
    others: Mapping[str, mx.array]

    def chosen(self, scales: Mapping[str, float]) -> mx.array:
        """Give the array of the adapter whose scale is not zero, else the base's; raises UsageError for two."""
        active = [name for name in self.others if scales[name] != 0]
        if len(active) > 1:
            raise UsageError(
                f"{' and '.join(active)} replace {self.parameter}", expected="one of them at a time", field="adapter"
            )
        return self.others[active[0]] if active else self.base

    def put(self, scales: Mapping[str, float]) -> None:
        """Put the chosen one in place; raises as `chosen` does."""
        self.layer[self.key] = self.chosen(scales)


def exchanges(module: nn.Module, wholes: Mapping[str, Mapping[str, mx.array]]) -> tuple[Exchange, ...]:
    """Make ready what replaces a module's parameters, in its dtype; `wholes` has arrays by adapter and parameter.

    An array that is the base's own, as PEFT writes beside the factors of embeddings, replaces nothing.
    """
    layers: dict[str, nn.Module] = dict(module.named_modules())
    names = sorted({name for arrays in wholes.values() for name in arrays})
    split = ((name, *name.rpartition(".")[::2]) for name in names)
    own = ((name, layers[path], key, layers[path][key]) for name, path, key in split)
    every = (Exchange(name, layer, key, base, _others(name, base, wholes)) for name, layer, key, base in own)
    return tuple(each for each in every if each.others)


def _others(name: str, base: mx.array, wholes: Mapping[str, Mapping[str, mx.array]]) -> dict[str, mx.array]:
    import mlx.core as mx

    cast = {adapter: arrays[name].astype(base.dtype) for adapter, arrays in wholes.items() if name in arrays}
    return {adapter: array for adapter, array in cast.items() if not mx.array_equal(array, base, equal_nan=True)}


def refuse_packed(module: nn.Module, replaced: Sequence[str], file: object) -> None:
    """Raise UsageError, naming all, for packed parameters that a whole tensor would replace."""
    packed = sorted(set(replaced) & set(packed_names(module)))
    if packed:
        raise UsageError(
            f"the adapter replaces {', '.join(packed)}, which are packed",
            expected="a base where these are not quantized",
            file=str(file),
            tensor=packed[0],
            field="adapter",
        )
