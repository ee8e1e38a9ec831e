"""One tensor of a header: its fields, their types, its byte range, dtype, shape and length.

Source: the format's description in the safetensors README, and the checks of its reference implementation
(0.8). Stricter here: no other fields than the three, F4's and F6's last dimension, shapes with a zero whose
other sizes overflow, and entries written as lists.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import shown

_FIELDS = frozenset(("dtype", "shape", "data_offsets"))
_LIMIT = 1 << 63
_DAMAGED = "the file is damaged or was written by a faulty program: download or write it again"


class HeaderEntry(NamedTuple):
    """A tensor in a header. `start` and `end` are in bytes from the start of the data section.

    A checkpoint may have 100,000 of them: a named tuple is made in a third of the time of a frozen dataclass.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_entry(name: str, fields: object, data_length: int, file: str) -> HeaderEntry:
    """Check what a header says of one tensor. Raises CheckpointError that names the tensor and the field."""
    if type(fields) is not dict or fields.keys() != _FIELDS:
        raise _bad_fields(name, fields, file)
    start, end = _range(name, fields["data_offsets"], data_length, file)
    dtype, shape = fields["dtype"], fields["shape"]
    if type(dtype) is not str:
        raise entry_error(file, name, "dtype", f"the dtype {shown(dtype)}", "a text")
    if type(shape) is not list:
        raise entry_error(file, name, "shape", f"the shape {shown(shape)}", "a list of sizes")
    sizes = tuple(shape)
    if end - start != tensor_length(name, dtype, sizes, file):
        raise _bad_length(name, dtype, sizes, end - start, file)
    return HeaderEntry(name, dtype, sizes, start, end)


def tensor_length(name: str, dtype: str | None, shape: tuple[object, ...], file: str) -> int:
    """Give the bytes that a tensor takes.

    Raises CheckpointError for an unknown dtype, sizes that are not integers from 0, 2**63 bits or more in all
    (sizes of zero left out), and a row of a sub-byte dtype that does not end at a byte's end.
    """
    known = DTYPES.get(dtype) if dtype is not None else None
    if known is None:
        raise entry_error(file, name, "dtype", f"the unknown dtype {shown(dtype)}", f"one of {', '.join(DTYPES)}")
    bits, total = known.bits, known.bits
    empty = False
    for size in shape:
        if type(size) is not int or size < 0:
            raise entry_error(file, name, "shape", f"the size {shown(size)} in its shape", "an integer from 0 up")
        if size:
            total *= size
            if total >= _LIMIT:
                raise entry_error(file, name, "shape", f"the shape {shown(list(shape))}", "less than 2**63 bits in all")
        else:
            empty = True
    if bits % 8:
        _check_rows(name, known.name, bits, shape, file)
    return 0 if empty else total // 8


def entry_error(file: str, name: str, field: str, seen: str, expected: str, hint: str = _DAMAGED) -> CheckpointError:
    """Give the error for one field of one tensor."""
    return CheckpointError(
        f"tensor {shown(name)} has {seen}", expected=expected, hint=hint, file=file, tensor=name, field=field
    )


def _range(name: str, offsets: object, data_length: int, file: str) -> tuple[int, int]:
    if type(offsets) is list and len(offsets) == 2:
        start, end = offsets
        if type(start) is int and type(end) is int and 0 <= start <= end <= data_length:
            return start, end
    expected = f"two integers, start and end, within the {data_length} bytes of data"
    raise entry_error(file, name, "data_offsets", f"the offsets {shown(offsets)}", expected)


def _check_rows(name: str, dtype: str, bits: int, shape: tuple[object, ...], file: str) -> None:
    """Let a row of sub-byte elements end at a byte's end; a tensor without dimensions has no row."""
    last = shape[-1] if shape else 1
    if type(last) is int and last * bits % 8:
        expected = f"a last size that is a multiple of {8 // gcd(8, bits)}, so that rows end at whole bytes"
        raise entry_error(file, name, "shape", f"{dtype} elements in the shape {shown(list(shape))}", expected)


def _bad_fields(name: str, fields: object, file: str) -> CheckpointError:
    seen = f"the fields {shown(list(fields))}" if type(fields) is dict else f"the value {shown(fields)}"
    return entry_error(file, name, "fields", seen, "the fields dtype, shape and data_offsets")


def _bad_length(name: str, dtype: str, shape: tuple[object, ...], seen: int, file: str) -> CheckpointError:
    wanted = tensor_length(name, dtype, shape, file)
    expected = f"{wanted} bytes for {dtype} {shown(list(shape))}"
    return entry_error(file, name, "data_offsets", f"{seen} bytes of data", expected)
