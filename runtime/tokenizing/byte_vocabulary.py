"""Vocabularies of byte strings ranked by the order of merging, as tiktoken and Mistral's tekken have them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from weightloom.engine.show import listed
from weightloom.runtime.tokenizing.merges import implied_merges
from weightloom.runtime.tokenizing.vocabulary_file import bad_vocabulary, built, found_whole
from weightloom.runtime.tokenizing.word_splits import Splitting

_EXPECTED = "every single byte and each byte string once, ranks from 0 on"


@dataclass(frozen=True, slots=True)
class ByteVocabulary:
    """Byte strings by rank, whose ids begin at `first`; special tokens with their ids; how texts are cut into words."""

    file: Path
    ranked: tuple[bytes, ...]
    first: int
    special: Mapping[str, int]
    splitting: Splitting


def from_base64(file: Path, text: Any) -> bytes:
    """Give the bytes of a token in base64; raises ConfigError for what is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise bad_vocabulary(file, f"the token {str(text)[:40]!r} is no base64: {error}", "base64") from error


def byte_backend(vocabulary: ByteVocabulary) -> Tokenizer:
    """Make the tokenizer; nothing is put around a text. Raises ConfigError for byte strings that do not fit."""
    _check(vocabulary)
    return built(vocabulary.file, _backend, vocabulary)


def _check(vocabulary: ByteVocabulary) -> None:
    ranked = set(vocabulary.ranked)
    missing = [str(byte) for byte in range(256) if bytes([byte]) not in ranked]
    if missing or len(ranked) != len(vocabulary.ranked) or b"" in ranked:
        seen = f"bytes that are no tokens: {listed(missing)}" if missing else "a token is empty or there twice"
        raise bad_vocabulary(vocabulary.file, seen, _EXPECTED)
    spelled = {spell(token) for token in vocabulary.ranked}
    both = [text for text in vocabulary.special if text in spelled]
    if both:
        raise bad_vocabulary(vocabulary.file, f"tokens both special and not: {listed(both)}", "each token once")


def _backend(vocabulary: ByteVocabulary) -> Tokenizer:
    words = [spell(token) for token in vocabulary.ranked]
    ids = {word: number for number, word in enumerate(words, vocabulary.first)}
    merges = implied_merges(ids, words)
    # A word that is a token is that token, whatever the merges would make of it.
    backend = Tokenizer(models.BPE(vocab={**ids, **vocabulary.special}, merges=merges, ignore_merges=True))
    if vocabulary.splitting.normalizer is not None:
        backend.normalizer = vocabulary.splitting.normalizer()
    backend.pre_tokenizer = pre_tokenizers.Sequence(vocabulary.splitting.steps())
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    found_whole(backend, vocabulary.special, special=True)
    return backend


def spell(token: bytes) -> str:
    """Spell bytes in the characters of byte-level vocabularies, one for each byte."""
    return token.decode("latin-1").translate(_characters())


@cache
def _characters() -> Mapping[int, str]:
    """GPT-2's characters for bytes: printable ones of Latin-1 are themselves, the others follow from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return {byte: chr(next(others)) for byte in range(256) if byte not in printable}
