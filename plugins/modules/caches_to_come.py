"""What the caches of a model will hold for a context: seen by running it on shapes alone.

MLX computes nothing until an array is asked for, but knows every shape and dtype at once. So the model is called with
stand-ins for parameters and tokens, and its caches are looked at: whatever kinds of cache an architecture has, and
whatever dtype comes out of its layers, the sizes are those of a real prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine.carrier import spec_of
from weightloom.engine.spec import TensorSpec
from weightloom.plugins.modules.binding import bind
from weightloom.plugins.modules.cache_size import CacheSize
from weightloom.plugins.modules.stand_in import stand_in


@runtime_checkable
class Kinded(Protocol):
    """A cache that says in words what it keeps."""

    @property
    def kind(self) -> str:
        """Such as `full` or `window of 4096`."""
        ...


def cache_sizes(
    module: nn.Module, specs: Mapping[str, TensorSpec], context: int, batch: int
) -> tuple[CacheSize, ...] | None:
    """Give what a prompt of `context` tokens leaves in the caches, by kind; None for a model that keeps nothing.

    `specs` are the parameters as they will be bound; the module's own are replaced by stand-ins. Nothing is computed.
    """
    make: Any = getattr(module, "make_cache", None)
    if make is None:
        return None
    bind(module, {name: stand_in(spec) for name, spec in specs.items()})
    caches: Sequence[object] = make()
    module(mx.zeros((batch, context), mx.int32), caches)
    return tuple(_by_kind(caches))


def held(caches: Iterable[object]) -> int:
    """Give the bytes of all arrays in caches; an array that two of them have counts once."""
    return sum(array.nbytes for array in {id(array): array for array in _arrays(list(caches))}.values())


def _by_kind(caches: Sequence[object]) -> Iterator[CacheSize]:
    kinds: dict[str, list[object]] = defaultdict(list)
    for cache in caches:
        kinds[cache.kind if isinstance(cache, Kinded) else type(cache).__name__].append(cache)
    for kind, members in kinds.items():
        dtypes = sorted({spec_of(array).dtype or "" for array in _arrays(members)})
        yield CacheSize(kind, len(members), tuple(dtypes), held(members))


def _arrays(value: object) -> Iterator[mx.array]:
    """Give the arrays in a value, as deep as lists, mappings and attributes go."""
    if isinstance(value, mx.array):
        yield value
    elif isinstance(value, Mapping):
        yield from (array for each in value.values() for array in _arrays(each))
    elif isinstance(value, list | tuple):
        yield from (array for each in value for array in _arrays(each))
    elif hasattr(value, "__dict__"):
        yield from _arrays(vars(value))
