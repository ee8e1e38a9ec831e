"""Stop strings: text up to the first of them, whatever the pieces that it comes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weightloom.engine.errors import UsageError


def refuse_empty(stops: Sequence[str]) -> None:
    """Raise UsageError for a stop string without a character, and for one string in place of a list."""
    if isinstance(stops, str) or not all(stops):
        raise UsageError(f"stop is {stops!r}", expected="a list of texts, none of them empty", field="stop")


def until(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """Give pieces of text up to the first stop string, without it; what may be the start of one waits."""
    waiting = ""
    for piece in pieces:
        waiting += piece
        found = first_stop(waiting, stops)
        if found is not None:
            if found:
                yield waiting[:found]
            return
        sure = len(waiting) - max((_begun(waiting, stop) for stop in stops), default=0)
        if sure:
            yield waiting[:sure]
            waiting = waiting[sure:]
    if waiting:
        yield waiting


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Give where the first stop string in a text starts; None where there is none."""
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


def _begun(text: str, stop: str) -> int:
    """Give how many characters at the end of a text are the start of a stop string."""
    return next((length for length in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:length])), 0)
