"""Quantized modules: putting them in the place of plain ones, before any parameter is read.

Nothing is computed: MLX makes parameters lazily, and those made here are replaced when the checkpoint is bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from weightloom.engine.errors import ConfigError
from weightloom.plugins.layers.packing import Quantization as Quantization
from weightloom.plugins.modules.packed_products import refuse_unrunnable

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn


_STACK = 3


@runtime_checkable
class Packable(Protocol):
    """A module with stacked matrices for parameters, each of which can be packed."""

    def packed(self, name: str, how: Quantization) -> nn.Module:
        """Give a module like this one in which the parameter `name` is packed."""
        ...


def matrices(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Give the shapes of all that can be packed and is not, by path: linear layers, embeddings, stacks of matrices."""
    return dict(_matrices(module))


def widths(module: nn.Module) -> dict[str, int]:
    """Give the columns of the same."""
    return {path: shape[-1] for path, shape in matrices(module).items()}


def _matrices(module: nn.Module) -> Iterator[tuple[str, tuple[int, ...]]]:
    import mlx.nn as nn

    for path, each in module.named_modules():
        if isinstance(each, nn.Linear | nn.Embedding):
            yield path, each.weight.shape
        elif isinstance(each, Packable):
            stacks = _plain_stacks(cast("nn.Module", each))
            yield from ((f"{path}.{name}".lstrip("."), value.shape) for name, value in stacks)


def _plain_stacks(module: nn.Module) -> Iterator[tuple[str, mx.array]]:
    import mlx.core as mx

    beside = {name + end for name in module for end in ("_scales", "_biases", "_global_scale")}
    for name, value in module.items():
        stack = isinstance(value, mx.array) and value.ndim == _STACK and mx.issubdtype(value.dtype, mx.floating)
        if stack and name not in beside:
            yield name, value


def quantize(module: nn.Module, wanted: Mapping[str, Quantization]) -> None:
    """Replace the modules at these paths by quantized ones; a path may also lead to a stack of a Packable module.

    A quantized linear layer or embedding has `weight` (U32), `scales` and, in affine mode, `biases`. A stack
    `NAME` has NAME (U32), `NAME_scales` and `NAME_biases`. What is `scaled` has a `global_scale`
    besides. Raises ConfigError for a path that leads to neither, a matrix whose rows do not divide into groups, or a
    quantization that MLX does not compute with on this device.
    """
    shapes = matrices(module)
    refuse_unrunnable({path: how for path, how in wanted.items() if path in shapes}, shapes)
    modules: dict[str, nn.Module] = dict(module.named_modules())
    for path, how in wanted.items():
        place, made = _made(modules, path, how)
        _put(module, place, made)
        modules |= {f"{place}.{below}".rstrip("."): each for below, each in made.named_modules()}


def _put(module: nn.Module, place: str, made: nn.Module) -> None:
    from mlx.utils import tree_unflatten

    module.update_modules(tree_unflatten([(place, made)]))


def _made(modules: Mapping[str, nn.Module], path: str, how: Quantization) -> tuple[str, nn.Module]:
    """Make what stands for a path from then on; gives where it goes too."""
    parent, _, name = path.rpartition(".")
    try:
        if path in modules:
            return path, _quantized(modules[path], path, how)
        if isinstance(owner := modules.get(parent), Packable) and name in owner:
            return parent, owner.packed(name, how)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(
            f"{path} cannot have {how.bits} bits in groups of {how.group_size} ({how.mode})",
            expected="bits, group size and mode that MLX has, and rows that divide into groups",
            field=path,
        ) from error
    raise ConfigError(f"there is no module {path} to quantize", expected="a path of the model", field=path)


def _quantized(plain: nn.Module, path: str, how: Quantization) -> nn.Module:
    import mlx.nn as nn

    from weightloom.plugins.layers.scaled import ScaledEmbedding, ScaledLinear

    linear: type[nn.QuantizedLinear] = ScaledLinear if how.scaled else nn.QuantizedLinear
    embedding: type[nn.QuantizedEmbedding] = ScaledEmbedding if how.scaled else nn.QuantizedEmbedding
    if isinstance(plain, nn.Linear):
        rows, columns = plain.weight.shape
        return linear(columns, rows, "bias" in plain, how.group_size, how.bits, how.mode)
    if isinstance(plain, nn.Embedding):
        rows, columns = plain.weight.shape
        return embedding(rows, columns, how.group_size, how.bits, how.mode)
    raise ConfigError(
        f"{path} is a {type(plain).__name__}", expected="a linear layer, an embedding or a stack of experts", field=path
    )
