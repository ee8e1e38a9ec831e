"""The header of a safetensors file.

The format: 8 bytes with the header's length (little-endian), the header (JSON), then the data section.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType

from weightloom.engine.checkpoints.foreign import foreign_hint
from weightloom.engine.checkpoints.header_columns import Columns, read_columns
from weightloom.engine.checkpoints.header_entries import are_sound, read_entries
from weightloom.engine.checkpoints.header_entry import HeaderEntry as HeaderEntry
from weightloom.engine.checkpoints.header_entry import entry_error, tensor_length
from weightloom.engine.checkpoints.header_tiling import check_tiling
from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.checkpoints.strict_json import parse_regular, strings_in
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import shown
from weightloom.engine.spec import TensorSpec

MAX_HEADER_BYTES = 100_000_000
METADATA = "__metadata__"


@dataclass(frozen=True)
class Header:
    """A checked header. `raw` is its JSON verbatim, padding included; `columns` are in the header's order."""

    raw: bytes = field(repr=False)
    columns: Columns = field(repr=False)
    metadata: Mapping[str, str] | None

    @cached_property
    def entries(self) -> tuple[HeaderEntry, ...]:
        """The tensors one by one, in the header's order."""
        return self.columns.entries()

    @property
    def data_start(self) -> int:
        """Where the data section starts, in bytes from the start of the file."""
        return 8 + len(self.raw)


def parse_header(raw: bytes, data_length: int, *, file: str) -> Header:
    """Read and check a header's JSON against the `data_length` bytes of data that follow it.

    Raises CheckpointError, naming `file` and the tensor, unless every entry is sound and all of them together
    cover the data, each byte once.
    """
    found = read_columns(raw)
    if found is None or not are_sound(found[1], data_length, file):
        metadata, columns = _read_json(raw, data_length, file)
    else:
        metadata, columns = _metadata(found[0], file), found[1]
    check_tiling(columns, data_length, file)
    return Header(raw, columns, metadata)


def _read_json(raw: bytes, data_length: int, file: str) -> tuple[Mapping[str, str] | None, Columns]:
    values = parse_regular(raw, _strings, file=file, what="the header")
    metadata = _metadata(values.pop(METADATA, None), file)
    return metadata, read_entries(values, data_length, file)


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
    columns = _laid_out(tensors)
    raw = _encoded(texts, columns)
    return Header(raw + b" " * (-len(raw) % 8), columns, texts)


_NEW = "new header"


def _laid_out(tensors: Iterable[tuple[str, TensorSpec]]) -> Columns:
    """Give tensors their places, one behind the other."""
    kinds: dict[tuple[str | None, tuple[int, ...]], tuple[TensorSpec, int]] = {}
    specs: dict[str, TensorSpec] = {}
    lengths: list[int] = []
    for name, spec in tensors:
        if name in specs or name == METADATA:
            raise entry_error(_NEW, name, "name", "a name that is taken", "names that differ", "rename one of them")
        kind = (spec.dtype, spec.shape)
        if kind not in kinds:
            kinds[kind] = TensorSpec(*kind), tensor_length(name, *kind, _NEW)
        specs[name], length = kinds[kind]
        lengths.append(length)
    ends = list(accumulate(lengths, initial=0))
    return Columns(list(specs), list(specs.values()), ends[:-1], ends[1:])


_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _encoded(metadata: Mapping[str, str] | None, columns: Columns) -> bytes:
    """Write the JSON; what tensors of one dtype and shape share is written once."""
    kinds = {id(spec): spec for spec in columns.specs}
    shared = {key: f'{{"dtype":{_text(spec.dtype)},"shape":{_text(spec.shape)}' for key, spec in kinds.items()}
    rows = zip(columns.names, columns.specs, columns.starts, columns.ends, strict=True)
    parts = [] if metadata is None else [f"{_text(METADATA)}:{_text(dict(metadata))}"]
    parts += [f'{_text(name)}:{shared[id(spec)]},"data_offsets":[{start},{end}]}}' for name, spec, start, end in rows]
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
