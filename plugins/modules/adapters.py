"""Between adapters and a module: what of it can be changed, and putting changes beside its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from weightloom.engine.errors import PlanError
from weightloom.engine.spec import TensorSpec
from weightloom.plugins.modules.binding import param_specs

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn

    from weightloom.plugins.layers.terms import Term


def unpacked_specs(module: nn.Module) -> dict[str, TensorSpec]:
    """Give the specs of a module's parameters as if no matrix were packed; those have no dtype. Computes nothing."""
    specs = param_specs(module)
    packed = dict(_packed(module))
    beside = {name for names, _ in packed.values() for name in names}
    plain = {name: spec for name, spec in specs.items() if name not in beside}
    return {**plain, **{name: TensorSpec(None, shape) for name, (_, shape) in packed.items()}}


def packed_names(module: nn.Module) -> tuple[str, ...]:
    """Name a module's parameters that are packed."""
    return tuple(name for name, _ in _packed(module))


def _packed(module: nn.Module) -> Iterator[tuple[str, tuple[tuple[str, ...], tuple[int, ...]]]]:
    """Give packed parameters by name: the names of what lies beside each, and its shape unpacked."""
    import mlx.nn as nn

    from weightloom.plugins.layers.experts import QuantizedExperts

    for path, layer in module.named_modules():
        if isinstance(layer, nn.QuantizedLinear | nn.QuantizedEmbedding):
            rows, words = layer.weight.shape
            beside = (f"{path}.scales", f"{path}.biases", f"{path}.global_scale")
            yield f"{path}.weight", (beside, (rows, words * 32 // layer.bits))
        elif isinstance(layer, QuantizedExperts):
            for name, bits in layer.bits.items():
                *stack, words = layer[name].shape
                beside = (f"{path}.{name}_scales", f"{path}.{name}_biases", f"{path}.{name}_global_scale")
                yield f"{path}.{name}", (beside, (*stack, words * 32 // bits))


def dense_weight(module: nn.Module, name: str) -> mx.array:
    """Give a weight of a linear layer, an embedding or a stack of experts, unpacked where it is packed."""
    import mlx.core as mx
    import mlx.nn as nn

    from weightloom.plugins.layers.experts import Experts
    from weightloom.plugins.layers.scaled import ScaledEmbedding, ScaledLinear, unpacked

    path, key = _split(name)
    layer = dict(module.named_modules())[path]
    if isinstance(layer, ScaledLinear | ScaledEmbedding):
        return unpacked(layer)
    if isinstance(layer, nn.QuantizedLinear | nn.QuantizedEmbedding):
        how = (layer.group_size, layer.bits, layer.mode)
        return mx.dequantize(layer.weight, layer.scales, layer.get("biases"), *how)
    return layer.dense(key) if isinstance(layer, Experts) else layer[key]


def unchangeable(module: nn.Module, names: Iterable[str]) -> tuple[str, ...]:
    """Name those of these parameters beside which no factors can be put."""
    from weightloom.plugins.layers.lora import changeable

    layers: dict[str, nn.Module] = dict(module.named_modules())
    split = ((name, *_split(name)) for name in names)
    return tuple(name for name, path, key in split if path not in layers or not changeable(layers[path], key))


def attach(module: nn.Module, terms: Mapping[str, tuple[Term, ...]]) -> None:
    """Put changes beside a module's parameters, by parameter; raises PlanError, before any is put, naming all."""
    from weightloom.plugins.layers.lora import change
    from weightloom.plugins.modules.deferring import as_its_own

    refused = unchangeable(module, terms)
    if refused:
        raise PlanError(
            f"no factors can be put beside {', '.join(refused)}",
            expected="weights of linear layers and embeddings, and stacks of experts",
            tensor=refused[0],
        )
    layers: dict[str, nn.Module] = dict(module.named_modules())
    by_layer: dict[str, dict[str, tuple[Term, ...]]] = {}
    for name, each in terms.items():
        path, key = _split(name)
        by_layer.setdefault(path, {})[key] = each
    for path, own in by_layer.items():
        with as_its_own(layers[path]):
            change(layers[path], own)


def _split(name: str) -> tuple[str, str]:
    path, _, key = name.rpartition(".")
    return path, key
