"""Pairs of texts as rows of tokens: both within a length, each token with the number of the text that it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.configs.json_file import read_json_object

if TYPE_CHECKING:
    from weightloom.runtime.tokenizing.tokenizer import Tokenizer

_SETTINGS = "tokenizer_config.json"
_FIELD = "model_input_names"


@dataclass(frozen=True, slots=True)
class Pair:
    """A row: token ids, and for each its token type (0 for the first text, where the tokenizer tells them apart)."""

    ids: tuple[int, ...]
    types: tuple[int, ...]


def takes_types(folder: Path) -> bool:
    """Say whether the tokenizer's settings want token types given to the model: unless they list others alone.

    Raises ConfigError where `model_input_names` is no list.
    """
    path = folder / _SETTINGS
    listed = read_json_object(path).get(_FIELD)
    if listed is not None and not isinstance(listed, list):
        raise ConfigError(f"{_FIELD} is {listed!r}", expected="a list of names", file=path, field=_FIELD)
    return listed is None or "token_type_ids" in listed


def encode_pairs(tokenizer: Tokenizer, first: str, seconds: Sequence[str], limit: int | None) -> list[Pair]:
    """Encode a text with each of others, framed as the tokenizer frames pairs.

    A pair longer than `limit` loses from the end of the longer text, then of both alike. Raises UsageError for a text
    with half characters, or a limit that leaves no room.
    """
    backend = tokenizer.backend
    room = None if limit is None else limit - backend.num_special_tokens_to_add(True)
    if room is not None and room < 2:
        raise UsageError(f"max_length is {limit}", expected="room for a token of each text", field="max_length")
    return [_pair(tokenizer, first, second, room) for second in seconds]


def _pair(tokenizer: Tokenizer, first: str, second: str, room: int | None) -> Pair:
    backend = tokenizer.backend
    try:
        one, two = (backend.encode(text, add_special_tokens=False) for text in (first, second))
    except (TypeError, UnicodeEncodeError) as error:
        raise UsageError(f"a text has no tokens: {error}", expected="Unicode text", field="text") from error
    if room is not None and len(one) + len(two) > room:
        kept = _shares(len(one), len(two), room)
        one.truncate(kept[0])
        two.truncate(kept[1])
    two.set_sequence_id(1)
    found = backend.post_process(one, two, True)
    return Pair(tuple(found.ids), tuple(found.type_ids))


def _shares(one: int, two: int, room: int) -> tuple[int, int]:
    """Give how many tokens stay of each text: the shorter keeps what it has up to half of the room."""
    short = min(one, two, room // 2)
    return (short, room - short) if one <= two else (room - short, short)
