"""The header of a safetensors file.

The format: 8 bytes with the header's length (little-endian), the header (JSON), then the data section.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from weightloom.engine.errors import CheckpointError
from weightloom.engine.foreign import foreign_hint
from weightloom.engine.header_columns import read_columns
from weightloom.engine.header_entries import entries_of, read_entries
from weightloom.engine.header_entry import HeaderEntry as HeaderEntry
from weightloom.engine.header_entry import entry_error, tensor_length
from weightloom.engine.header_tiling import check_tiling
from weightloom.engine.show import shown
from weightloom.engine.source import ByteSource
from weightloom.engine.spec import TensorSpec
from weightloom.engine.strict_json import parse_regular, strings_in

MAX_HEADER_BYTES = 100_000_000
METADATA = "__metadata__"


@dataclass(frozen=True, slots=True)
class Header:
    """A checked header. `raw` is its JSON verbatim, padding included; `entries` are in the header's order."""

    raw: bytes = field(repr=False)
    entries: tuple[HeaderEntry, ...] = field(repr=False)
    metadata: Mapping[str, str] | None

    @property
    def data_start(self) -> int:
        """Where the data section starts, in bytes from the start of the file."""
        return 8 + len(self.raw)


def parse_header(raw: bytes, data_length: int, *, file: str) -> Header:
    """Read and check a header's JSON against the `data_length` bytes of data that follow it.

    Raises CheckpointError, naming `file` and the tensor, unless every entry is sound and all of them together
    cover the data, each byte once.
    """
    columns = read_columns(raw)
    entries = None if columns is None else entries_of(columns, data_length, file)
    if columns is None or entries is None:
        return _parse_json(raw, data_length, file)
    check_tiling(entries, data_length, file)
    return Header(raw, entries, _metadata(columns.metadata, file))


def _parse_json(raw: bytes, data_length: int, file: str) -> Header:
    values = parse_regular(raw, _strings, file=file, what="the header")
    metadata = _metadata(values.pop(METADATA, None), file)
    entries = read_entries(values, data_length, file)
    check_tiling(entries, data_length, file)
    return Header(raw, entries, metadata)


def _strings(values: Mapping[str, object]) -> int:
    """Count the texts in a sound header: of each tensor its name, the names of three fields, and a dtype."""
    return 5 * len(values) + (strings_in(values[METADATA]) - 4 if METADATA in values else 0)


def read_header(source: ByteSource) -> Header:
    """Read and check the header of a file. Raises CheckpointError, and StorageError where reading fails."""
    if source.size < 8:
        raise _not_ours(source, f"{source.size} bytes, too few for a header")
    length = int.from_bytes(_read(source, 0, 8), "little")
    if not 0 < length <= min(MAX_HEADER_BYTES, source.size - 8):
        raise _not_ours(source, f"a header length of {length} bytes in a file of {source.size} bytes")
    return parse_header(_read(source, 8, length), source.size - 8 - length, file=source.name)


def build_header(entries: Iterable[tuple[str, TensorSpec]], metadata: Mapping[str, str] | None) -> bytes:
    """Make the JSON of a new file's header; raises as `new_header` does."""
    return new_header(entries, metadata).raw


def new_header(tensors: Iterable[tuple[str, TensorSpec]], metadata: Mapping[str, str] | None) -> Header:
    """Make a new file's header: data in the given order without holes, its JSON padded to 8 bytes.

    Raises CheckpointError, naming the tensor, for a name that is taken or cannot be one, an open or unknown
    dtype, a sub-byte shape that does not fill bytes, and a header of more than 100 MB.
    """
    texts = None if metadata is None else _metadata(dict(metadata), _NEW)
    entries = tuple(_laid_out(tensors))
    raw = _encoded(texts, entries)
    return Header(raw + b" " * (-len(raw) % 8), entries, texts)


_NEW = "new header"


def _laid_out(tensors: Iterable[tuple[str, TensorSpec]]) -> Iterator[HeaderEntry]:
    """Give tensors their places, one behind the other."""
    lengths: dict[tuple[str | None, tuple[int, ...]], int] = {}
    taken, end = {METADATA}, 0
    for name, spec in tensors:
        if name in taken:
            raise entry_error(_NEW, name, "name", "a name that is taken", "names that differ", "rename one of them")
        taken.add(name)
        kind = (spec.dtype, spec.shape)
        if kind not in lengths:
            lengths[kind] = tensor_length(name, *kind, _NEW)
        start, end = end, end + lengths[kind]
        yield HeaderEntry(name, spec.dtype or "", spec.shape, start, end)


_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _encoded(metadata: Mapping[str, str] | None, entries: Sequence[HeaderEntry]) -> bytes:
    """Write the JSON; what tensors of one dtype and shape share is written once."""
    kinds = {(dtype, shape) for _, dtype, shape, _, _ in entries}
    shared = {(dtype, shape): f'{{"dtype":{_text(dtype)},"shape":{_text(shape)}' for dtype, shape in kinds}
    parts = [] if metadata is None else [f"{_text(METADATA)}:{_text(dict(metadata))}"]
    parts += [
        f'{_text(name)}:{shared[dtype, shape]},"data_offsets":[{start},{end}]}}'
        for name, dtype, shape, start, end in entries
    ]
    try:
        raw = f"{{{','.join(parts)}}}".encode()
    except UnicodeEncodeError as error:
        near = shown(error.object[max(0, error.start - 40) : error.end])
        raise CheckpointError(f"half a surrogate pair in a name, after {near}", file=_NEW) from error
    if len(raw) > MAX_HEADER_BYTES:
        raise CheckpointError(
            f"a header of {len(raw)} bytes",
            expected=f"at most {MAX_HEADER_BYTES}",
            hint="ask for smaller shards",
            file=_NEW,
        )
    return raw


def _metadata(value: object, file: str) -> Mapping[str, str] | None:
    if value is None:
        return None
    if type(value) is not dict:
        raise _bad_metadata(f"the header's {METADATA} is {shown(value)}", file)
    for key, text in value.items():
        if type(text) is not str:
            raise _bad_metadata(f"the header's {METADATA} has the value {shown(text)} for {shown(key)}", file)
    return MappingProxyType(value)


def _bad_metadata(seen: str, file: str) -> CheckpointError:
    return CheckpointError(
        seen,
        expected="an object whose values are texts",
        hint="write the value as a text",
        file=file,
        field=METADATA,
    )


def _read(source: ByteSource, offset: int, length: int) -> bytes:
    buffer = bytearray(length)
    source.read_into(offset, memoryview(buffer))
    return bytes(buffer)


def _not_ours(source: ByteSource, seen: str) -> CheckpointError:
    head = _read(source, 0, min(source.size, 64))
    return CheckpointError(
        seen,
        expected=f"a safetensors file: a header of 1 to {MAX_HEADER_BYTES} bytes, then the data",
        hint=foreign_hint(head) or "the file is damaged or its download is incomplete: get it again",
        file=source.name,
    )
