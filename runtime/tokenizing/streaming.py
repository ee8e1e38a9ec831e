"""Text as token ids come: every piece whole characters, all pieces together the text.

A character is a Unicode code point. What a reader sees as one may be several (a letter and its accent, a family of
emoji), and whatever comes next may still join it: to wait for that would hold every piece back until the next token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

# What decoders put in the place of bytes that are not a character, or not yet.
_INCOMPLETE = "\ufffd"


def stream_text(ids: Iterable[int], decode: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """Yield the text of ids piece by piece; a character that spans several ids comes whole, with the last of them.

    `decode` turns ids into text. What is still incomplete when the ids end comes then, as `decode` writes it.
    """
    known: list[int] = []
    waiting: list[int] = []
    for number in ids:
        waiting.append(number)
        piece = _new_text(known, waiting, decode)
        if piece and not piece.endswith(_INCOMPLETE):
            yield piece
            known, waiting = waiting, []
    rest = _new_text(known, waiting, decode)
    if rest:
        yield rest


def _new_text(known: Sequence[int], waiting: Sequence[int], decode: Callable[[Sequence[int]], str]) -> str:
    """Give what `waiting` adds after `known`, whose text is out already: decoders treat a text's start differently."""
    before, both = decode(known), decode([*known, *waiting])
    return both[len(before) :] if both.startswith(before) else decode(waiting)
