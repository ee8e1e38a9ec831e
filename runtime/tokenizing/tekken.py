"""Mistral's `tekken.json`: byte strings by rank after a fixed number of special tokens.

Format: an object with `config` (`pattern`, `default_vocab_size`, `default_num_special_tokens`), `vocab` (objects with
`rank` and `token_bytes` in base64; those beyond the vocabulary's size are left out) and, in newer files,
`special_tokens` (`rank`, `token_str`). Ids are the special tokens' ranks, then the others'.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.show import shown
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.tokenizing.byte_vocabulary import ByteVocabulary, from_base64
from weightloom.runtime.tokenizing.vocabulary_file import bad_vocabulary
from weightloom.runtime.tokenizing.word_splits import Splitting, cut_by

# The special tokens of files that state none.
_UNSTATED = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]"),
    *("[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
_MOST_TOKENS = 1 << 24


def read_tekken(file: Path) -> ByteVocabulary:
    """Read the vocabulary; raises ConfigError, with the field, for a file that does not have the form."""
    content = read_json_object(file)
    config = content.get("config")
    if not isinstance(config, Mapping):
        raise bad_vocabulary(file, f"config is {shown(config)}", "an object", "config")
    first = _whole(file, config, "default_num_special_tokens")
    count = _whole(file, config, "default_vocab_size") - first
    pattern = config.get("pattern")
    if not isinstance(pattern, str):
        raise bad_vocabulary(file, f"config.pattern is {shown(pattern)}", "a regular expression", "config.pattern")
    splitting = Splitting(lambda: cut_by(pattern))
    return ByteVocabulary(file, _ranked(file, content, count), first, _special(file, content, first), splitting)


def _ranked(file: Path, content: Mapping[str, Any], count: int) -> tuple[bytes, ...]:
    """Give the first `count` byte strings by their ranks, which must be the numbers from 0 on."""
    entries = _entries(file, content.get("vocab"), "vocab")
    ranks = {entry.get("rank"): entry for entry in entries if type(entry.get("rank")) is int}
    if not 256 <= count <= len(ranks) == len(entries) or set(ranks) != set(range(len(entries))):
        seen = f"{len(entries)} tokens for {count} ids, or ranks that leave numbers out"
        raise bad_vocabulary(file, seen, "256 tokens or more, their ranks 0, 1, 2 and so on", "vocab")
    return tuple(from_base64(file, ranks[rank].get("token_bytes")) for rank in range(count))


def _special(file: Path, content: Mapping[str, Any], first: int) -> Mapping[str, int]:
    stated = content.get("special_tokens")
    named: dict[Any, Any]
    if stated is None:
        named = dict(enumerate(_UNSTATED))
    else:
        named = {entry.get("rank"): entry.get("token_str") for entry in _entries(file, stated, "special_tokens")}
    texts = {number: named.get(number, f"<SPECIAL_{number}>") for number in range(first)}
    fits = set(named) <= set(texts) and all(isinstance(text, str) and text for text in texts.values())
    if not fits or len(set(texts.values())) != first or (stated is not None and len(named) != len(stated)):
        seen = f"special tokens that are no texts, there twice, or not from 0 to {first - 1}"
        raise bad_vocabulary(file, seen, "a text of its own for each rank", "special_tokens")
    return {text: number for number, text in texts.items()}


def _entries(file: Path, value: Any, field: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise bad_vocabulary(file, f"{field} is {shown(value)}", "a list of objects", field)
    if any(isinstance(entry.get("rank"), list | dict) for entry in value):
        raise bad_vocabulary(file, f"a rank of {field} is no number", "whole numbers", field)
    return value


def _whole(file: Path, config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
        raise bad_vocabulary(file, f"config.{name} is {shown(value)}", "a number of tokens", f"config.{name}")
    return value
