"""Strategies for headers and index files that are almost right: sound ones with bytes or JSON values changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tests.engine.raw_files import entry

Json: TypeAlias = Any

DTYPES = {"U8": 8, "BF16": 16, "F32": 32, "I64": 64, "F4": 4, "F6_E2M3": 6}

# Values that parsers trip over: types, signs, sizes, half characters, names that paths and shapes are made of.
ODD_VALUES: tuple[Json, ...] = (
    *(None, True, False, -1, 0, 1, 2, 4, 8, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**40),
    *(0.0, 1.0, 1.5, -0.0, 1e300, "", "a", "b", "F4", "F6_E3M2", "F9", "f32", "U8", "BOOL", "dtype", "shape"),
    *("__metadata__", "weight_map", "\0", "a\nb", "\ud800", "😀", "..", ".", "/", "../a", "/a", "C:a", "a/b/../c"),
    *("a.safetensors", "./a.safetensors", "x" * 300, [], [0], [1, 1], [4, 0], [0, 4], [[0, 4]], [2**32, 2**32], {}),
    *({"a": "a"}, {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, [[[[[[]]]]]], {"a": {"a": {"a": {}}}}),
)
ODD_TEXTS = (
    *(b"NaN", b"Infinity", b"-Infinity", b"-0", b"1e999", b"1E2", b"0x1", b"01", b"9" * 5000, b"\\ud800", b"\\udc00"),
    *(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0", b"\n", b" ", b'"', b"\\", b"{", b"}", b"[", b"]"),
    *(b",", b":", b"null", b"true", b"[" * 3000, b'{"a":' * 3000, b'"a":1,', b'"shape":[1],', b'"a":{},', b"//", b"-"),
)


@st.composite
def headers(draw: st.DrawFn) -> tuple[dict[str, Json], int]:
    """A sound header and the length of its data."""
    header: dict[str, Json] = {}
    end = 0
    for name in draw(st.lists(st.sampled_from("abcdeü"), max_size=4, unique=True)):
        dtype = draw(st.sampled_from(sorted(DTYPES)))
        rows, columns = draw(st.sampled_from([(0, 4), (1, 4), (2, 4), (3, 8), (4, 0)]))
        start, end = end, end + rows * columns * DTYPES[dtype] // 8
        header[name] = entry(dtype, [rows, columns], start, end)
    if draw(st.booleans()):
        header["__metadata__"] = {"format": "pt"}
    return header, end


@st.composite
def indexes(draw: st.DrawFn) -> dict[str, Json]:
    """A sound index of the files a.safetensors and b.safetensors."""
    files = st.sampled_from(["a.safetensors", "b.safetensors"])
    weight_map = draw(st.dictionaries(st.sampled_from("abcd"), files, min_size=1))
    return {"metadata": {"total_size": 16}, "weight_map": weight_map}


def changed_text(random: Random, raw: bytes) -> bytes:
    """The text with up to three pieces cut out, doubled, replaced by an odd one or by any byte."""
    for _ in range(random.randint(1, 3)):
        start = random.randint(0, len(raw))
        end = min(len(raw), start + random.choice([0, 1, 1, 2, 5, 20]))
        piece = random.choice([random.choice(ODD_TEXTS), random.randbytes(1), raw[start:end] * 2, b""])
        raw = raw[:start] + piece + raw[end:]
    return raw


def changed_value(random: Random, value: Json) -> Json:
    """The JSON value with one or two of its parts removed, renamed, added or replaced."""
    value = _copy(value)
    for _ in range(random.randint(1, 2)):
        place = value
        while isinstance(place, dict | list) and place:
            key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], dict | list) or random.random() < 0.3:
                random.choice(CHANGES)(place, key, _copy(random.choice(ODD_VALUES)))
                break
            place = place[key]
    return value


def _copy(value: Json) -> Json:
    return json.loads(json.dumps(value))


def _replace(place: Json, key: Json, odd: Json) -> None:
    place[key] = odd


def _remove(place: Json, key: Json, odd: Json) -> None:
    del place[key]


def _add(place: Json, key: Json, odd: Json) -> None:
    if isinstance(place, dict):
        place[str(odd)] = place[key]
    else:
        place.insert(key, odd)


CHANGES: tuple[Callable[[Json, Json, Json], None], ...] = (_replace, _replace, _remove, _add)


def dump(value: Json) -> bytes:
    """JSON as files have it; half characters become escapes, and odd values of other kinds stay what they are."""
    return json.dumps(value).encode()
