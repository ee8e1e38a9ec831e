"""Cutting a module among ranks: its layers are replaced by those of one rank, before any parameter is read.

Nothing is computed: MLX makes parameters lazily, and those made here are replaced when the checkpoint is bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.view import View
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.modules.binding import param_specs

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn

    from weightloom.engine.planning.sharding import Kind, Sharding

WEIGHT = "weight"


@runtime_checkable
class HasHeads(Protocol):
    """A layer whose rows belong to heads, which are never cut."""

    def heads(self) -> Mapping[str, int]:
        """Give the count of heads behind each of its linear layers, by the name of the config's field."""
        ...


@runtime_checkable
class Staged(Protocol):
    """A model whose layers can be done by one rank after another."""

    def at_stage(self, group: mx.distributed.Group) -> None:
        """Keep the layers of this rank's stage alone."""
        ...


def sharding_of(architecture: Architecture, module: nn.Module, rank: int, size: int) -> tuple[Sharding, list[str]]:
    """Give how an architecture's parameters are cut for a rank, and in words what is not cut though it might be.

    Raises UsageError for an architecture that does not say how it is cut.
    """
    from weightloom.engine.planning.sharding import Sharding

    if not architecture.sharding:
        raise UsageError(
            f"{architecture.name} does not say how its parameters are cut among ranks",
            expected="an architecture with a sharding",
            hint="run it as one process",
            field="sharding",
        )
    kinds = cast("Mapping[str, Kind]", architecture.sharding)
    wanted = Sharding(rank, size, kinds)
    vocabularies = {name: spec for name, spec in param_specs(module).items() if wanted.kind_of(name) == "vocab"}
    odd = {name: spec.shape[0] for name, spec in vocabularies.items() if spec.shape[0] % size}
    whole: dict[str, Kind] = {"^" + name.replace(".", r"\."): "replicate" for name in odd}
    notes = [f"{name} is whole on each rank: {rows} rows do not divide by {size}" for name, rows in odd.items()]
    return Sharding(rank, size, {**whole, **kinds}), notes


def cut_module(module: nn.Module, sharding: Sharding, group: mx.distributed.Group) -> None:
    """Replace the layers of a module by those of a rank, with parameters of the shapes that `sharding` cuts.

    Raises PlanError for what does not divide, heads first; UsageError for a group of another size or rank.
    """
    from mlx.utils import tree_unflatten

    if (group.rank(), group.size()) != (sharding.rank, sharding.size):
        raise UsageError(
            f"a sharding for rank {sharding.rank} of {sharding.size}, in rank {group.rank()} of {group.size()}",
            expected="the rank and size of the group of processes",
            field="sharding",
        )
    _check_heads(module, sharding)
    whole = param_specs(module)
    # Inner ones first, for an outer one keeps what it finds in itself.
    for path, each in sorted(module.named_modules(), key=lambda item: -item[0].count(".")):
        for part in _part_of(path, each, sharding, group):
            module.update_modules(tree_unflatten([(path, part)]))
        _mix_among_ranks(path, each, sharding, group)
    _resize(module, whole, sharding)


def _check_heads(module: nn.Module, sharding: Sharding) -> None:
    for path, each in module.named_modules():
        if not isinstance(each, HasHeads) or sharding.kind_of(f"{path}.q_proj.{WEIGHT}") != "column":
            continue
        for name, count in each.heads().items():
            if count % sharding.size:
                raise PlanError(
                    f"{path} has {count} {name}, which do not divide among {sharding.size} ranks",
                    expected=f"a multiple of {sharding.size}",
                    hint="use fewer ranks, or --parallel pipeline",
                    field=name,
                )


def _part_of(path: str, module: Any, sharding: Sharding, group: mx.distributed.Group) -> Iterator[nn.Module]:
    """Give the layer that takes the place of a module whose results need the other ranks, if they do."""
    import mlx.nn as nn

    from weightloom.plugins.layers import parallel
    from weightloom.plugins.layers.scaled import ScaledEmbedding

    kind = sharding.kind_of(f"{path}.{WEIGHT}")
    if isinstance(module, nn.Linear | nn.QuantizedLinear) and kind in ("row", "vocab"):
        yield _linear(module, kind, group)
    elif isinstance(module, nn.Embedding) and kind == "vocab":
        rows, columns = module.weight.shape
        yield parallel.VocabEmbedding(rows, columns, group)
    elif isinstance(module, nn.QuantizedEmbedding) and kind == "vocab":
        packed = (
            parallel.ScaledVocabEmbedding if isinstance(module, ScaledEmbedding) else parallel.QuantizedVocabEmbedding
        )
        yield packed(_sizes(module), _packing(module), group)


def _mix_among_ranks(path: str, module: nn.Module, sharding: Sharding, group: mx.distributed.Group) -> None:
    """Have experts that are cut put together over all ranks."""
    from weightloom.plugins.layers import parallel
    from weightloom.plugins.layers.experts import SparseMlp

    kind = sharding.kind_of(f"{path}.experts.down_proj")
    if isinstance(module, SparseMlp) and kind in ("row", "expert"):
        module.mix_by(parallel.sliced(group) if kind == "row" else parallel.shared_out(group))


def _linear(module: nn.Linear | nn.QuantizedLinear, kind: str, group: mx.distributed.Group) -> nn.Module:
    import mlx.nn as nn

    from weightloom.plugins.layers import parallel
    from weightloom.plugins.layers.scaled import ScaledLinear

    bias = "bias" in module
    if isinstance(module, nn.Linear):
        outputs, inputs = module.weight.shape
        plain = parallel.RowLinear if kind == "row" else parallel.VocabLinear
        return plain(inputs, outputs, bias, group)
    outputs, inputs = _sizes(module)
    if isinstance(module, ScaledLinear):
        scaled = parallel.ScaledRowLinear if kind == "row" else parallel.ScaledVocabLinear
        return scaled((inputs, outputs), bias, _packing(module), group)
    packed = parallel.QuantizedRowLinear if kind == "row" else parallel.QuantizedVocabLinear
    return packed((inputs, outputs), bias, _packing(module), group)


def _sizes(module: Any) -> tuple[int, int]:
    rows, words = module.weight.shape
    return rows, words * 32 // module.bits


def _packing(module: Any) -> Quantization:
    return Quantization(module.bits, module.group_size, module.mode)


def _resize(module: nn.Module, whole: Mapping[str, TensorSpec], sharding: Sharding) -> None:
    """Give each parameter the shape of this rank's part."""
    import mlx.core as mx
    from mlx.utils import tree_unflatten

    shapes = {name: sharding.cut(name, View.identity(0, spec), whole).shape for name, spec in whole.items()}
    # The dtypes are those of the module as built: binding asks for names and shapes.
    parts = [(name, mx.zeros(shape)) for name, shape in shapes.items() if shape != whole[name].shape]
    module.update(tree_unflatten(parts))
