"""A header in the form in which nearly all are written, read as columns, without an object for each tensor.

The form: no escapes, no spaces, metadata first if there is any, and of each tensor dtype, shape and data_offsets in
this order. Cut at its quotes, such a text has ten pieces for each tensor, and each tenth piece is a column. Anything
else is left to a reader of JSON; so is everything that is not sound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

_START = '{"__metadata__":'
_SIZES = re.compile(r":\[((?:[0-9]+,)*[0-9]+|)\],")
_CONTROLS = bytes(range(32))
_FIXED = ((2, ":{"), (3, "dtype"), (4, ":"), (6, ","), (7, "shape"), (9, "data_offsets"))


@dataclass(frozen=True, slots=True)
class Columns:
    """What a header says, its tensors in order; names differ, and offsets are integers. Nothing else is checked."""

    metadata: dict[str, object] | None
    names: Sequence[str]
    dtypes: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    starts: Sequence[int]
    ends: Sequence[int]


def read_columns(raw: bytes) -> Columns | None:
    """Read a header's JSON; None if it is written in another form."""
    if b"\\" in raw or len(raw.translate(None, _CONTROLS)) != len(raw):
        return None
    try:
        metadata, text = _metadata_and_rest(raw.decode().rstrip(" "))
        return None if text is None else _columns(metadata, text)
    except (ValueError, RecursionError, MemoryError):
        return None


def _metadata_and_rest(text: str) -> tuple[dict[str, object] | None, str | None]:
    """Give the metadata, and the text of all tensors, with a comma behind each; None for another form."""
    if not text.startswith(_START):
        return None, f"{text[1:-1]}," if text.startswith('{"') and text.endswith("}") else None
    value, end = json.JSONDecoder(object_pairs_hook=dict).raw_decode(text, len(_START))
    texts = isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    # Each name and each text has two quotes: with more of them, a name is there twice.
    if not texts or text.count('"', len(_START), end) != 4 * len(value) or text[end : end + 2] != ',"':
        return None, None
    return value, f"{text[end + 1 : -1]}," if text.endswith("}") else None


def _columns(metadata: dict[str, object] | None, text: str) -> Columns | None:
    pieces = text.split('"')
    count, rest = divmod(len(pieces), 10)
    names, places = pieces[1::10], pieces[10::10]
    if rest != 1 or pieces[0] or any(pieces[at::10].count(fixed) != count for at, fixed in _FIXED):
        return None
    shapes, offsets = _shapes(pieces[8::10]), _offsets(places)
    if shapes is None or offsets is None or len({*names, "__metadata__"}) != count + 1:
        return None
    return Columns(metadata, names, pieces[5::10], shapes, offsets[::2], offsets[1::2])


def _shapes(texts: list[str]) -> list[tuple[int, ...]] | None:
    """Read `:[2,3],` and the like; there are few that differ."""
    known: dict[str, Any] = {text: _SIZES.fullmatch(text) for text in set(texts)}
    if None in known.values():
        return None
    read = {text: tuple(json.loads(f"[{found[1]}]")) for text, found in known.items()}
    return list(map(read.__getitem__, texts))


def _offsets(texts: list[str]) -> list[int] | None:
    """Read `:[0,24]},` and the like, as numbers in one list."""
    joined = "".join(texts)
    pairs = joined[2:-3].split("]},:[")
    one_comma = list(map(str.count, pairs, repeat(","))) == [1] * len(texts)
    if not one_comma or not joined.startswith(":[") or not joined.endswith("]},"):
        return None
    texts = ",".join(pairs).split(",")
    numbers = list(map(int, texts))
    return numbers if list(map(str, numbers)) == texts else None
