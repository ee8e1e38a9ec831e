"""The metadata of a GGUF file: keys with typed values.

Types by number, as the GGUF specification has them: 0-5 and 10-11 integers, 6 and 12 floats, 7 a bool, 8 a text,
9 an array of one of them.
"""

from __future__ import annotations

import struct

from weightloom.engine.gguf.cursor import Cursor
from weightloom.engine.show import shown

Value = bool | int | float | str | tuple["Value", ...]

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_BOOL, _TEXT, _ARRAY = 7, 8, 9
# An array's own type and length take 12 bytes, a text's length 8.
_LEAST = {_TEXT: 8, _ARRAY: 12}
_DEEPEST = 4


def read_fields(cursor: Cursor, count: int) -> dict[str, Value]:
    """Read `count` keys with their values. Raises CheckpointError, naming the key."""
    found: dict[str, Value] = {}
    for _ in range(count):
        key = cursor.text()
        if key in found:
            raise cursor.error(f"the key {shown(key)} twice", "each key once", key)
        found[key] = _value(cursor, cursor.number("<I"), key, 0)
    return found


def _value(cursor: Cursor, kind: int, key: str, depth: int) -> Value:
    if kind == _TEXT:
        return cursor.text()
    if kind == _ARRAY:
        return _array(cursor, key, depth + 1)
    return _numbers(cursor, kind, 1, key)[0]


def _array(cursor: Cursor, key: str, depth: int) -> tuple[Value, ...]:
    kind, count = cursor.number("<I"), cursor.number("<Q")
    if depth > _DEEPEST:
        raise cursor.error(f"arrays more than {_DEEPEST} deep in {shown(key)}", "flat arrays", key)
    if kind in _SCALARS:
        return _numbers(cursor, kind, count, key)
    if count * _LEAST.get(kind, 1) > cursor.left:
        raise cursor.error(f"an array of {count} in {shown(key)}, longer than the file", "an array within it", key)
    return tuple([_value(cursor, kind, key, depth) for _ in range(count)])


def _numbers(cursor: Cursor, kind: int, count: int, key: str) -> tuple[Value, ...]:
    letter = _SCALARS.get(kind)
    if letter is None:
        raise cursor.error(f"a value of the unknown type {kind} in {shown(key)}", "a type from 0 to 12", key)
    raw = cursor.take(count * struct.calcsize(f"<{letter}"))
    values: tuple[Value, ...] = struct.unpack(f"<{count}{letter}", raw)
    if kind != _BOOL:
        return values
    if not set(values) <= {0, 1}:
        raise cursor.error(f"a bool that is neither 0 nor 1 in {shown(key)}", "0 or 1", key)
    return tuple([value == 1 for value in values])
