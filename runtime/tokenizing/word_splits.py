"""How each kind of byte-level vocabulary cuts a text into words before merges: the `tokenizer.ggml.pre` of a GGUF.

The patterns are those that the vocabularies were made with, as their publishers' tokenizer.json files state them, and
for `default` those that llama.cpp falls back to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenizers import Regex, normalizers, pre_tokenizers

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_DEFAULT = (
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
)


@dataclass(frozen=True, slots=True)
class Splitting:
    """One kind: its steps, and what else goes with it. `whole_words` takes a word that is a token as it is."""

    steps: Callable[[], list[Any]]
    normalizer: Callable[[], Any] | None = None
    whole_words: bool = False
    adds_bos: bool = False


def cut_by(*patterns: str) -> list[Any]:
    """Give the steps that cut a text where patterns match, one after the other, then spell it in bytes."""
    cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    return [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


def _gpt2() -> list[Any]:
    return [pre_tokenizers.ByteLevel(add_prefix_space=False)]


def _smollm() -> list[Any]:
    return [pre_tokenizers.Digits(individual_digits=True), *_gpt2()]


def _llama3() -> list[Any]:
    return cut_by(rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}")


def _qwen2() -> list[Any]:
    return cut_by(rf"{_CONTRACTIONS}|{_WORDS}|\p{{N}}|{_REST}")


def _default() -> list[Any]:
    return cut_by(*_DEFAULT)


SPLITTINGS = {
    "default": Splitting(_default),
    "gpt-2": Splitting(_gpt2),
    "llama-bpe": Splitting(_llama3, whole_words=True, adds_bos=True),
    "qwen2": Splitting(_qwen2, normalizer=normalizers.NFC),
    "smollm": Splitting(_smollm),
}
