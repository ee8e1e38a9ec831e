"""A tokenizer's vocabulary file that will not do: one form of error for all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from tokenizers import AddedToken, Tokenizer

from weightloom.engine.errors import ConfigError

_Content = TypeVar("_Content")
_HINT = "download the file again, or save a tokenizer.json beside it"


def bad_vocabulary(file: Path, seen: str, expected: str, field: str | None = None) -> ConfigError:
    """Give the error for a vocabulary file: what was seen in it, and what can be read."""
    return ConfigError(seen, expected=expected, hint=_HINT, file=file, field=field)


def read_vocabulary_bytes(file: Path) -> bytes:
    """Give a file's bytes; raises ConfigError where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise bad_vocabulary(file, f"cannot be read: {error}", "a file that can be opened") from error


def built(file: Path, make: Callable[[_Content], Tokenizer], content: _Content) -> Tokenizer:
    """Give `make(content)`; what the tokenizers library refuses is a ConfigError about `file`."""
    try:
        return make(content)
    except ConfigError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise bad_vocabulary(file, f"makes no tokenizer: {error}", "pieces that fit together") from error


def found_whole(backend: Tokenizer, texts: Iterable[str], *, special: bool, normalized: bool = False) -> None:
    """Let tokens be found whole in a text before it is split; special ones are no text of their own."""
    tokens = [AddedToken(text, special=special, normalized=normalized) for text in texts]
    (backend.add_special_tokens if special else backend.add_tokens)(tokens)
