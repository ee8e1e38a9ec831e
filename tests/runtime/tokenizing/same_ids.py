"""Ids compared with those of the sentencepiece library, for any text."""

from __future__ import annotations

from typing import Any

import tokenizers
from hypothesis import assume, given
from hypothesis import strategies as st

WORDS = ["hello", "the", " ", "  ", "aaa", "\n", "東京", "é", "0", "12345", "==", "=====", "ing", "ß", "😀", "▁", "ﬁ"]
mixed = st.lists(st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=4), max_size=12).map("".join)


def assume_plain(made: tokenizers.Tokenizer, text: str) -> None:
    """Leave out texts with special tokens, which are found whole here and never by the libraries that are compared."""
    whole = [token.content for token in made.get_added_tokens_decoder().values() if token.special]
    assume(not any(token in text for token in whole))


def assert_same_ids(reference: Any, made: tokenizers.Tokenizer) -> None:
    """Texts without control pieces have the same ids."""
    unigram = type(made.model).__name__ == "Unigram"

    @given(text=mixed)
    def same(text: str) -> None:
        assume_plain(made, text)
        mine, ids = made.encode(text, add_special_tokens=False).ids, reference.encode(text)
        assert mine == ids or (unigram and _equally_likely(reference, mine, ids))

    same()


def _equally_likely(reference: Any, one: list[int], other: list[int]) -> bool:
    """Whether a unigram model scores the same pieces in another order: where float32 and float64 round apart."""
    texts = ["".join(map(reference.id_to_piece, ids)) for ids in (one, other)]
    return texts[0] == texts[1] and sorted(one) == sorted(other)
