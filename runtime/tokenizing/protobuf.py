"""Protocol-buffer messages, field by field, for formats that are too small for a library.

Format: the wire encoding of protocol buffers (varints, 64-bit, length-delimited and 32-bit values); groups, which are
long deprecated, are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class BadMessage(ValueError):
    """The bytes are no message; raised within a reader, which says whose bytes they are."""


def read_message(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield (field number, wire type, value) in the order of the bytes; raises BadMessage where they end early."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        reader = _READERS.get(kind)
        if reader is None or number == 0:
            raise BadMessage(f"field {number} of wire type {kind} at byte {at}")
        value, at = reader(data, at)
        yield number, kind, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(data):
            raise BadMessage(f"a number without an end at byte {at}")
        byte = data[at + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    raise BadMessage(f"a number of more than {_LONGEST_VARINT} bytes at byte {at}")


def _block(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    return _exactly(data, at, size)


def _exactly(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise BadMessage(f"{size} bytes wanted at byte {at}, {len(data) - at} left")
    return data[at : at + size], at + size


_READERS: Mapping[int, Callable[[bytes, int], tuple[Any, int]]] = {
    VARINT: _varint,
    FIXED64: lambda data, at: _exactly(data, at, 8),
    BYTES: _block,
    FIXED32: lambda data, at: _exactly(data, at, 4),
}


def as_float(value: int | bytes) -> float:
    """Read a 32-bit value as a float."""
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) else float(value)


def as_signed(value: int | bytes) -> int:
    """Read a varint as int32 or int64: negative numbers are stored as 64 bits."""
    number = value if isinstance(value, int) else int.from_bytes(value, "little")
    return number - (1 << 64) if number >= 1 << 63 else number
