"""Merges that a vocabulary implies: two neighbours become one token wherever together they are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def implied_merges(ids: Mapping[str, int], ordered: Iterable[str]) -> list[tuple[str, str]]:
    """Give all pairs of tokens that make a token of `ordered`, in its order; of equals, the lower ids first.

    This is what SentencePiece does by score and tiktoken by rank, stated as the list that other libraries want.
    """
    return [(token[:at], token[at:]) for token in ordered for at in _cuts(token, ids)]


def _cuts(token: str, ids: Mapping[str, int]) -> list[int]:
    found = [at for at in range(1, len(token)) if token[:at] in ids and token[at:] in ids]
    return sorted(found, key=lambda at: (ids[token[:at]], ids[token[at:]])) if len(found) > 1 else found
