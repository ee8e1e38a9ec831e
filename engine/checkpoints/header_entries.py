"""All tensors of a header, checked at once: what is asked of each entry is asked of columns of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import itemgetter, sub
from typing import Any

from weightloom.engine.checkpoints.header_columns import Columns
from weightloom.engine.checkpoints.header_entry import HeaderEntry, read_entry, tensor_length
from weightloom.engine.errors import CheckpointError
from weightloom.engine.spec import TensorSpec

_FIELDS = ("dtype", "shape", "data_offsets")
_fields = itemgetter(*_FIELDS)


def read_entries(values: Mapping[str, Any], data_length: int, file: str) -> Columns:
    """Check what a header says of its tensors. Raises CheckpointError that names the tensor and the field."""
    columns = _columns(values) if values else None
    if columns is not None and are_sound(columns, data_length, file):
        return columns
    # What is wrong, and where, is found one by one.
    return _of([read_entry(*each, data_length, file) for each in values.items()])


def are_sound(columns: Columns, data_length: int, file: str) -> bool:
    """Say whether each tensor has a known dtype, a possible shape, and the bytes of both within the data."""
    try:
        lengths = {id(spec): _length(spec, file) for spec in {id(spec): spec for spec in columns.specs}.values()}
    except CheckpointError:
        return False
    inside = min(columns.starts, default=0) >= 0 and max(columns.ends, default=0) <= data_length
    return inside and list(map(sub, columns.ends, columns.starts)) == [lengths[id(spec)] for spec in columns.specs]


def _length(spec: TensorSpec, file: str) -> int:
    return tensor_length("", spec.dtype, spec.shape, file)


def _columns(values: Mapping[str, Any]) -> Columns | None:
    """Take the fields apart; None if one is not of its type."""
    if not _are(dict, values.values()) or set(map(len, values.values())) != {len(_FIELDS)}:
        return None
    try:
        dtypes, shapes, offsets = zip(*map(_fields, values.values()), strict=True)
    except KeyError:
        return None
    if not (_are(str, dtypes) and _are(list, shapes) and _are(list, offsets) and set(map(len, offsets)) == {2}):
        return None
    if not _are(int, chain(chain.from_iterable(shapes), chain.from_iterable(offsets))):
        return None
    return _of(map(HeaderEntry, values, dtypes, map(tuple, shapes), *zip(*offsets, strict=True)))


def _of(entries: Iterable[HeaderEntry]) -> Columns:
    names, specs, starts, ends = list[str](), list[TensorSpec](), list[int](), list[int]()
    known: dict[tuple[str, tuple[int, ...]], TensorSpec] = {}
    for name, dtype, shape, start, end in entries:
        kind = (dtype, shape)
        names.append(name)
        specs.append(known.get(kind) or known.setdefault(kind, TensorSpec(*kind)))
        starts.append(start)
        ends.append(end)
    return Columns(names, specs, starts, ends)


def _are(kind: type, values: Iterable[object]) -> bool:
    return set(map(type, values)) == {kind}
