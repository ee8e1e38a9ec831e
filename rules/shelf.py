"""Shelf: the heads of many rule files, of which only those are read that can name what is asked for.

A file is asked for its head's text first. A name that the head has stands in this text as it is: a head with
something in it that YAML may read as other text (a backslash, a doubled quote, more than ASCII) is always read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from weightloom.engine.errors import WeightloomError
from weightloom.rules.document import Head
from weightloom.rules.parse import head_bytes, parse_head, read_bytes
from weightloom.rules.plain import plain
from weightloom.rules.sources import RuleSource

_OTHER_TEXT = (b"\\", b"''", b"\0")


@dataclass(frozen=True, slots=True)
class Offer:
    """A file with what its head says."""

    source: RuleSource
    head: Head


class Shelf:
    """The heads of rule files, each read once and when it is needed; what cannot be read is among `problems`."""

    def __init__(self, sources: Iterable[RuleSource]) -> None:
        self._sources = tuple(sources)
        self._heads: dict[RuleSource, Head | WeightloomError] = {}

    def naming(self, name: str) -> Iterator[Offer]:
        """Yield the files whose heads have a name among their text, and perhaps others; none for an empty name."""
        wanted = _encoded(name)
        for source, text in self._texts if name else ():
            if text is None or wanted in text:
                yield from self._offer(source)

    def near(self, name: str) -> Iterator[Offer]:
        """Yield the files whose heads have among their text what is a name but for case, `-` and `_`."""
        wanted = _encoded(plain(name))
        for source, text in self._texts if name else ():
            if text is None or wanted in _plain_bytes(text):
                yield from self._offer(source)

    def all(self) -> tuple[Offer, ...]:
        """Give every file whose head can be read."""
        return tuple(offer for source in self._sources for offer in self._offer(source))

    @property
    def problems(self) -> tuple[WeightloomError, ...]:
        """What went wrong with each file whose head cannot be read."""
        found = (self._head(source) for source in self._sources)
        return tuple(head for head in found if isinstance(head, WeightloomError))

    @cached_property
    def _texts(self) -> tuple[tuple[RuleSource, bytes | None], ...]:
        """Each file's head as it is written; None where that may not show what it says."""
        return tuple((source, _head_text(source)) for source in self._sources)

    def _offer(self, source: RuleSource) -> Iterator[Offer]:
        head = self._head(source)
        if isinstance(head, Head):
            yield Offer(source, head)

    def _head(self, source: RuleSource) -> Head | WeightloomError:
        if source not in self._heads:
            try:
                self._heads[source] = parse_head(read_bytes(source.path), source.label)
            except WeightloomError as error:
                self._heads[source] = error
        return self._heads[source]


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _plain_bytes(text: bytes) -> bytes:
    return text.lower().translate(None, b"-_")


def _head_text(source: RuleSource) -> bytes | None:
    try:
        text = head_bytes(read_bytes(source.path))
    except WeightloomError:
        return None
    shows = text.isascii() and not any(sign in text for sign in _OTHER_TEXT)
    return text if shows else None
