"""The header of one GGUF file: metadata, and each tensor's type, shape and place. Reads no tensor data.

The format (ggml project, docs/gguf.md), all little-endian: "GGUF", version (4 bytes), number of tensors and of keys
(8 each), the keys with their values, the tensors (name, dims with the fastest first, type, offset), padding to
`general.alignment`, then the data, from which the offsets count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType

from weightloom.engine.checkpoints.foreign import foreign_hint
from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.errors import CheckpointError
from weightloom.engine.gguf.cursor import Cursor
from weightloom.engine.gguf.fields import Value, read_fields
from weightloom.engine.gguf.types import TYPES, GgmlType
from weightloom.engine.show import shown

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32
_MOST_DIMS = 8
_MOST_BYTES = 1 << 62


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor: `shape` has the rows first, `offset` counts bytes from the start of the file."""

    name: str
    type: GgmlType
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        """Bytes of data."""
        return prod(self.shape) // self.type.block * self.type.nbytes


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """A checked header; the tensors are in its order."""

    version: int
    metadata: Mapping[str, Value] = field(repr=False)
    tensors: tuple[GgufTensor, ...] = field(repr=False)


def read_header(source: ByteSource) -> GgufHeader:
    """Read and check a header.

    Raises CheckpointError, naming file and tensor or key, for anything that is not a whole GGUF file of version 2 or
    3, little-endian; for a tensor of an unknown type; and for tensors that overlap or end beyond the file.
    """
    cursor = Cursor(source)
    version = _version(cursor)
    tensors, keys = cursor.number("<Q"), cursor.number("<Q")
    metadata = read_fields(cursor, keys)
    infos = [_info(cursor) for _ in range(tensors)]
    start = _aligned(cursor.position, _alignment(metadata, cursor))
    found = tuple([_placed(info, start, source) for info in infos])
    _check_apart(found, source.name)
    return GgufHeader(version, MappingProxyType(metadata), found)


def _version(cursor: Cursor) -> int:
    head = cursor.take(min(4, cursor.left))
    if head != MAGIC:
        raise CheckpointError(
            f"a file that begins with {shown(head)}",
            expected="a GGUF file, which begins with 'GGUF'",
            hint=foreign_hint(head) or "check the path",
            file=cursor.file,
        )
    version = cursor.number("<I")
    if version and not version & 0xFFFF:
        raise cursor.error("its numbers in big-endian order", "a little-endian GGUF file", "version")
    if version not in _VERSIONS:
        raise cursor.error(f"version {version}", "version 2 or 3", "version")
    return version


def _info(cursor: Cursor) -> GgufTensor:
    """Read one tensor's entry; its offset still counts from the start of the data."""
    name, count = cursor.text(), cursor.number("<I")
    if count > _MOST_DIMS:
        raise _bad(cursor.file, name, f"{count} dims", f"at most {_MOST_DIMS}", "shape")
    shape = tuple([cursor.number("<Q") for _ in range(count)][::-1])
    number, offset = cursor.number("<I"), cursor.number("<Q")
    kind = TYPES.get(number)
    if kind is None or not kind.readable:
        seen = f"the type {kind.name if kind else number}, which cannot be read"
        known = ", ".join(each.name for each in TYPES.values() if each.readable)
        raise CheckpointError(
            f"tensor {shown(name)} has {seen}",
            expected=f"one of {known}",
            hint="get the model in one of these types",
            file=cursor.file,
            tensor=name,
            field="type",
        )
    row = shape[-1] if shape else 1
    if row % kind.block:
        raise _bad(cursor.file, name, f"rows of {row} {kind.name} elements", f"a multiple of {kind.block}", "shape")
    return GgufTensor(name, kind, shape, offset)


def _alignment(metadata: Mapping[str, Value], cursor: Cursor) -> int:
    value = metadata.get("general.alignment", _ALIGNMENT)
    if type(value) is not int or not 0 < value <= 1 << 20 or value & (value - 1):
        raise cursor.error(f"the alignment {shown(value)}", "a power of two", "general.alignment")
    return value


def _aligned(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


def _placed(info: GgufTensor, start: int, source: ByteSource) -> GgufTensor:
    placed = GgufTensor(info.name, info.type, info.shape, start + info.offset)
    # A product of sizes with a zero among them is nothing, however large the others.
    if max(prod(filter(None, info.shape)), placed.nbytes) > _MOST_BYTES:
        raise _bad(source.name, info.name, f"the shape {shown(list(info.shape))}", "less than 2**62 bytes", "shape")
    end = placed.offset + placed.nbytes
    if end > source.size:
        seen = f"data up to byte {end} in a file of {source.size} bytes"
        raise _bad(source.name, info.name, seen, "data within the file", "offset")
    return placed


def _check_apart(tensors: tuple[GgufTensor, ...], file: str) -> None:
    seen: set[str] = set()
    end = 0
    for tensor in tensors:
        if tensor.name in seen:
            raise _bad(file, tensor.name, "two entries", "each tensor once", "name")
        seen.add(tensor.name)
    for tensor in sorted((each for each in tensors if each.nbytes), key=lambda each: each.offset):
        if tensor.offset < end:
            raise _bad(file, tensor.name, "data that overlaps the tensor before it", "tensors apart", "offset")
        end = tensor.offset + tensor.nbytes


def _bad(file: str, name: str, seen: str, expected: str, field: str) -> CheckpointError:
    return CheckpointError(
        f"tensor {shown(name)} has {seen}",
        expected=expected,
        hint="the file is damaged or its download is incomplete: get it again",
        file=file,
        tensor=name,
        field=field,
    )
