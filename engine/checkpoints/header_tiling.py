"""Together, the tensors of a header cover the data section: no byte twice, none left out."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from weightloom.engine.checkpoints.header_columns import Columns
from weightloom.engine.checkpoints.header_entry import HeaderEntry
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import shown


def check_tiling(columns: Columns, data_length: int, file: str) -> None:
    """Check that the byte ranges tile `data_length` bytes; empty tensors may lie anywhere in them.

    Raises CheckpointError that names the tensors beside the overlap or the hole.
    """
    in_order = (*columns.starts, data_length) == (0, *columns.ends)
    error = None if in_order else _broken(columns.entries(), data_length, file)
    if error is not None:
        raise error


def _broken(entries: Sequence[HeaderEntry], data_length: int, file: str) -> CheckpointError | None:
    """Give the error for the first place where the ranges do not tile the data."""
    end, last = 0, None
    for entry in sorted(entries, key=attrgetter("start", "end")):
        if entry.start == entry.end:
            continue
        if entry.start != end:
            return _overlap(last, entry, file) if entry.start < end else _hole(last, entry, end, file)
        end, last = entry.end, entry
    return None if end == data_length else _rest(last, data_length - end, file)


def _overlap(last: HeaderEntry | None, entry: HeaderEntry, file: str) -> CheckpointError:
    assert last is not None  # nothing starts before byte 0
    both = f"{shown(last.name)} (bytes {last.start} to {last.end}) and {shown(entry.name)}"
    return _error(f"tensors {both} (bytes {entry.start} to {entry.end}) overlap", entry.name, file)


def _hole(last: HeaderEntry | None, entry: HeaderEntry, end: int, file: str) -> CheckpointError:
    place = f"tensors {shown(last.name)} and {shown(entry.name)}" if last else f"the first tensor {shown(entry.name)}"
    word = "between" if last else "before"
    return _error(f"{entry.start - end} bytes {word} {place} belong to no tensor", entry.name, file)


def _rest(last: HeaderEntry | None, count: int, file: str) -> CheckpointError:
    place = f"after the last tensor {shown(last.name)}" if last else "in a file without tensors"
    return _error(f"{count} bytes {place} belong to no tensor", last.name if last else None, file)


def _error(seen: str, tensor: str | None, file: str) -> CheckpointError:
    return CheckpointError(
        seen,
        expected="tensors that cover the data section, each byte once",
        hint="the file is damaged or was written by a faulty program: download or write it again",
        file=file,
        tensor=tensor,
        field="data_offsets",
    )
