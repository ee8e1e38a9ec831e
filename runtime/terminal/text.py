"""Numbers and tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def size(nbytes: int) -> str:
    """Show a number of bytes in decimal units, three digits: `90.9 MB`."""
    value, unit = float(nbytes), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{nbytes} B" if unit == "B" else f"{value:.{max(0, 3 - len(str(int(value))))}f} {unit}"


def plural(count: int, noun: str) -> str:
    """Show a count with its noun: `1 tensor`, `104 tensors`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def aligned(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Pad cells to columns two spaces apart; the columns numbered in `right` are flush right."""
    table = [tuple(row) for row in rows]
    if not table:
        return []
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in table]


def _padded(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> Iterable[str]:
    for column, cell in enumerate(row):
        yield cell.rjust(widths[column]) if column in right else cell.ljust(widths[column])
