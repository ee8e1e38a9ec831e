"""`.tiktoken` files: a line for each token, its bytes in base64 and its rank.

The file says nothing of how words are cut, nor of special tokens: both are its publisher's (`tiktoken_kinds`); special
tokens that tokenizer_config.json states take the place of those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from weightloom.runtime.tokenizing.byte_vocabulary import ByteVocabulary, from_base64
from weightloom.runtime.tokenizing.tiktoken_kinds import KINDS, TiktokenKind
from weightloom.runtime.tokenizing.vocabulary_file import bad_vocabulary, read_vocabulary_bytes

_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]{1,9}")


def is_tiktoken(data: bytes) -> bool:
    """Whether a file that begins with `data` is a list of tokens with ranks."""
    return _LINE.fullmatch(data.split(b"\n", 1)[0].rstrip(b"\r")) is not None


def tiktoken_kind(file: Path, class_name: str | None) -> TiktokenKind:
    """Give the publisher's kind, by the class of the tokenizer if that is known, else by the file's name.

    Raises ConfigError for an unknown one: its words could only be guessed.
    """
    by_class = [kind for kind in KINDS if class_name in kind.classes]
    by_name = [kind for kind in KINDS if file.name in kind.files]
    if by_class or by_name:
        return (by_class or by_name)[0]
    known = ", ".join(f"{kind.name} ({', '.join(sorted(kind.files | kind.classes))})" for kind in KINDS)
    raise bad_vocabulary(file, f"it is not known how {class_name or 'this vocabulary'} cuts words", f"one of {known}")


def read_tiktoken(file: Path, kind: TiktokenKind, stated: Mapping[int, str]) -> ByteVocabulary:
    """Read the vocabulary; `stated` are special tokens by id. Raises ConfigError, with the line, for another form."""
    lines = read_vocabulary_bytes(file).splitlines()
    tokens = tuple(_token(file, number, line) for number, line in enumerate(lines))
    special = dict(enumerate(kind.special(len(tokens)), len(tokens)))
    named = {text: number for number, text in {**special, **_after(stated, len(tokens))}.items()}
    if sorted(named.values()) != list(range(len(tokens), len(tokens) + len(named))):
        raise bad_vocabulary(file, "special tokens are there twice or leave ids out", "one for each id, in a row")
    return ByteVocabulary(file, tokens, 0, named, kind.splitting)


def _after(stated: Mapping[int, str], count: int) -> Mapping[int, str]:
    return {number: text for number, text in stated.items() if number >= count}


def _token(file: Path, number: int, line: bytes) -> bytes:
    if _LINE.fullmatch(line) is None:
        raise bad_vocabulary(file, f"line {number + 1} is {line[:40]!r}", "a token in base64 and its rank")
    text, rank = line.split(b" ")
    if int(rank) != number:
        raise bad_vocabulary(file, f"line {number + 1} has the rank {int(rank)}", "ranks from 0 on, in a row")
    return from_base64(file, text)
