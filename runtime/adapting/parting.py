"""Adapters of a model that is cut among ranks: factors are cut as their weight is.

Of W + B @ A a rank has some rows of W, and then those of B; or some columns, and then those of A; or some matrices of a
stack, and then theirs. Rows of a vocabulary are looked up and scored on the rank that has them, but what is added to
them is small: its factors are whole on each rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from weightloom.engine.array_bytes import spec_and_bytes
from weightloom.engine.planning.adapter import Change
from weightloom.engine.planning.lifting import WHOLE
from weightloom.engine.planning.sharding import Kind, Sharding
from weightloom.engine.views.rank_slice import Slice
from weightloom.runtime.adapting.adapter_plan import unfit
from weightloom.runtime.adapting.adapters import ReadAdapter

if TYPE_CHECKING:
    import mlx.core as mx

_MATRIX = 2
# By the kind of cut of a weight: how A, B and, of a matrix, lengths of rows are cut. None: a rank cannot tell them.
_CUTS: Mapping[Kind, tuple[Kind, Kind, Kind | None]] = {
    "replicate": ("replicate", "replicate", "replicate"),
    "column": ("replicate", "column", "column"),
    "packed": ("replicate", "packed", "packed"),
    "row": ("row", "replicate", None),
    "vocab": ("replicate", "replicate", None),
    "expert": ("expert", "expert", None),
}


def cut_among(adapters: Sequence[ReadAdapter], sharding: Sharding) -> tuple[ReadAdapter, ...]:
    """Give one rank's part of adapters.

    Raises PlanError, naming every parameter, for lengths (DoRA) of what no rank has whole rows of, or other parts than
    rows of a matrix; and for what does not divide.
    """
    return tuple(_cut(each, sharding) for each in adapters)


def at_stage(adapters: Sequence[ReadAdapter], held: Mapping[str, object]) -> tuple[ReadAdapter, ...]:
    """Give what adapters change of the parameters that a rank has, of a model that is done layer by layer."""
    return tuple(_of_held(each, held) for each in adapters)


def _cut(adapter: ReadAdapter, sharding: Sharding) -> ReadAdapter:
    refused = [change.parameter for change in adapter.plan.changes if not _tells(change, adapter, sharding)]
    if refused:
        lines = [f"lengths of {name}, which is cut by {sharding.kind_of(name)}" for name in refused]
        raise unfit(adapter.plan.source, lines, refused[0])
    cuts: dict[str, Kind] = {name: kind for change in adapter.plan.changes for name, kind in _kinds(change, sharding)}
    cuts |= {f"{WHOLE}.{name}": sharding.kind_of(name) for name in adapter.plan.replaced}
    parts = {name: _part(name, array, cuts[name], sharding) for name, array in adapter.arrays.items()}
    return replace(adapter, arrays=parts)


def _tells(change: Change, adapter: ReadAdapter, sharding: Sharding) -> bool:
    """Say whether a rank has what lengths are of."""
    kind = sharding.kind_of(change.parameter)
    if change.magnitude is None or kind == "replicate":
        return True
    by_rows_of_a_matrix = not change.by_columns and len(adapter.arrays[change.a].shape) == _MATRIX
    return by_rows_of_a_matrix and _CUTS[kind][2] is not None


def _kinds(change: Change, sharding: Sharding) -> Iterator[tuple[str, Kind]]:
    a, b, lengths = _CUTS[sharding.kind_of(change.parameter)]
    yield change.a, a
    yield change.b, b
    if change.magnitude is not None:
        yield change.magnitude, lengths or "replicate"


def _part(name: str, array: mx.array, kind: Kind, sharding: Sharding) -> mx.array:
    spec = spec_and_bytes(name, array)[0]
    own = Sharding(sharding.rank, sharding.size, {"^": kind})
    found = own.slice_of(name, {name: spec})
    return array if found is None else _rows(array, found)


def _rows(array: mx.array, part: Slice) -> mx.array:
    import mlx.core as mx

    before = (slice(None),) * part.dim
    return mx.concatenate([array[(*before, slice(start, stop))] for start, stop in part.ranges], axis=part.dim)


def _of_held(adapter: ReadAdapter, held: Mapping[str, object]) -> ReadAdapter:
    changes = tuple(change for change in adapter.plan.changes if change.parameter in held)
    kept = {name: array for name, array in adapter.arrays.items() if name.split(".", 1)[1] in held}
    return replace(adapter, plan=replace(adapter.plan, changes=changes), arrays=kept)
