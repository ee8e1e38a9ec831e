"""All tensors of a header, checked at once: what is asked of each entry is asked of columns of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter, sub
from typing import Any

from weightloom.engine.errors import CheckpointError
from weightloom.engine.header_columns import Columns
from weightloom.engine.header_entry import HeaderEntry, read_entry, tensor_length

_FIELDS = ("dtype", "shape", "data_offsets")
_fields = itemgetter(*_FIELDS)


def read_entries(values: Mapping[str, Any], data_length: int, file: str) -> tuple[HeaderEntry, ...]:
    """Check what a header says of its tensors. Raises CheckpointError that names the tensor and the field."""
    columns = _columns(values) if values else None
    found = None if columns is None else entries_of(columns, data_length, file)
    # What is wrong, and where, is found one by one.
    return found or tuple([read_entry(*each, data_length, file) for each in values.items()])


def entries_of(columns: Columns, data_length: int, file: str) -> tuple[HeaderEntry, ...] | None:
    """Give the entries, or None unless all of them are sound."""
    lengths = _lengths(list(zip(columns.dtypes, columns.shapes, strict=True)), file)
    starts, ends = columns.starts, columns.ends
    if lengths is None or min(starts) < 0 or max(ends) > data_length or list(map(sub, ends, starts)) != lengths:
        return None
    rows = zip(columns.names, columns.dtypes, columns.shapes, starts, ends, strict=True)
    # A named tuple's own constructor takes three times as long.
    return tuple(map(tuple.__new__, repeat(HeaderEntry), rows))


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
    starts, ends = zip(*offsets, strict=True)
    return Columns(None, tuple(values), dtypes, tuple(map(tuple, shapes)), starts, ends)


def _lengths(kinds: Sequence[tuple[str, tuple[int, ...]]], file: str) -> list[int] | None:
    """Give the bytes that each tensor takes, or None if one has an unsound dtype or shape."""
    try:
        known = {kind: tensor_length("", *kind, file) for kind in set(kinds)}
    except CheckpointError:
        return None
    return list(map(known.__getitem__, kinds))


def _are(kind: type, values: Iterable[object]) -> bool:
    return set(map(type, values)) == {kind}
