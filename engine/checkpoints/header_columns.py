"""The tensors of a header as columns, without an object for each, and the form of header that is read so.

The form is that in which nearly all are written: no escapes, no spaces, metadata first if there is any, and of each
tensor dtype, shape and data_offsets in this order. Cut at its quotes, such a text has ten pieces for each tensor, and
each tenth piece is a column. Anything else is left to a reader of JSON; so is everything that is not sound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import add

from weightloom.engine.checkpoints.header_entry import HeaderEntry
from weightloom.engine.spec import TensorSpec

_START = '{"__metadata__":'
_SIZES = re.compile(r":\[((?:[0-9]+,)*[0-9]+|)\],")
_CONTROLS = bytes(range(32))
_FIXED = ((2, ":{"), (3, "dtype"), (4, ":"), (6, ","), (7, "shape"), (9, "data_offsets"))


@dataclass(frozen=True, slots=True)
class Columns:
    """Tensors in order: names, dtypes with shapes (one object for all that are alike), and byte ranges.

    Ranges count from the start of the data section. A checkpoint may have 100,000 tensors of some 40 kinds.
    """

    names: Sequence[str]
    specs: Sequence[TensorSpec]
    starts: Sequence[int]
    ends: Sequence[int]

    def only(self, picked: Sequence[bool]) -> Columns:
        """Give the tensors that are picked, one by one."""
        names, specs = compress(self.names, picked), compress(self.specs, picked)
        return Columns(
            tuple(names), tuple(specs), tuple(compress(self.starts, picked)), tuple(compress(self.ends, picked))
        )

    def entries(self) -> tuple[HeaderEntry, ...]:
        """Give an entry for each tensor."""
        rows = zip(self.names, self.specs, self.starts, self.ends, strict=True)
        return tuple([HeaderEntry(name, spec.dtype or "", spec.shape, *place) for name, spec, *place in rows])


def read_columns(raw: bytes) -> tuple[dict[str, object] | None, Columns] | None:
    """Read a header's JSON, metadata and tensors; None if it is written in another form.

    Names differ, offsets and sizes are integers; nothing else is checked.
    """
    if b"\\" in raw or len(raw.translate(None, _CONTROLS)) != len(raw):
        return None
    try:
        metadata, text = _metadata_and_rest(raw.decode().rstrip(" "))
        columns = None if text is None else _columns(text)
    except (ValueError, RecursionError, MemoryError):
        return None
    return None if columns is None else (metadata, columns)


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


def _columns(text: str) -> Columns | None:
    pieces = text.split('"')
    count, rest = divmod(len(pieces), 10)
    names, places = pieces[1::10], pieces[10::10]
    if rest != 1 or pieces[0] or any(pieces[at::10].count(fixed) != count for at, fixed in _FIXED):
        return None
    specs, offsets = _specs(pieces[5::10], pieces[8::10]), _offsets(places)
    if specs is None or offsets is None or len({*names, "__metadata__"}) != count + 1:
        return None
    return Columns(names, specs, offsets[::2], offsets[1::2])


def _specs(dtypes: list[str], shapes: list[str]) -> list[TensorSpec] | None:
    """Read dtypes, and shapes as `:[2,3],`."""
    both = list(map(add, dtypes, shapes))
    known: dict[str, TensorSpec] = {}
    for text, dtype, shape in {each: (each, *kind) for each, *kind in zip(both, dtypes, shapes, strict=True)}.values():
        found = _SIZES.fullmatch(shape)
        if found is None:
            return None
        known[text] = TensorSpec(dtype, tuple(json.loads(f"[{found[1]}]")))
    return list(map(known.__getitem__, both))


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
