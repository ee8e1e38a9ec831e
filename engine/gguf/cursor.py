"""A cursor over the header of a GGUF file: numbers and texts, one after the other, never beyond the file's end."""

from __future__ import annotations

import struct

from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.errors import CheckpointError

# The largest vocabularies take some 30 MB; a longer header is a damaged one.
_MOST = 1 << 28
_FIRST = 1 << 20


class Cursor:
    """Reads forward from byte 0. Every error is a CheckpointError that names the file and the byte."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._data = bytearray()
        self.position = 0

    @property
    def file(self) -> str:
        """What messages call the file."""
        return self._source.name

    @property
    def left(self) -> int:
        """Bytes between here and the end of what may be a header."""
        return min(self._source.size, _MOST) - self.position

    def take(self, count: int) -> bytes:
        """Give the next bytes."""
        end = self.position + count
        if count > self.left:
            raise self.error(f"{count} bytes wanted where {self.left} are left", "a whole header")
        if end > len(self._data):
            self._fill(end)
        found = bytes(self._data[self.position : end])
        self.position = end
        return found

    def number(self, form: str) -> int:
        """Give the next integer; `form` is its little-endian struct format."""
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    def text(self) -> str:
        """Give the next text: its length in 8 bytes, then UTF-8."""
        raw = self.take(self.number("<Q"))
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"a text that is not UTF-8: {error.reason}", "UTF-8") from error

    def error(self, seen: str, expected: str, field: str | None = None) -> CheckpointError:
        """Give the error for what was met just before here."""
        return CheckpointError(
            f"the GGUF header has {seen} (at byte {self.position})",
            expected=expected,
            hint="the file is damaged or its download is incomplete: get it again",
            file=self.file,
            field=field,
        )

    def _fill(self, end: int) -> None:
        start = len(self._data)
        stop = min(self._source.size, _MOST, max(end, 2 * start, _FIRST))
        piece = bytearray(stop - start)
        self._source.read_into(start, memoryview(piece))
        self._data += piece
