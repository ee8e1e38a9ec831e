"""What `.tiktoken` files do not say: how each publisher's vocabulary cuts words, and its special tokens.

The patterns and names are those of the publishers' own tokenizer code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weightloom.runtime.tokenizing.word_splits import SPLITTINGS, Splitting, cut_by

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = (rf"[\p{{{case}}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]" for case in (r"Lu}\p{Lt", "Ll"))
_KIMI = (
    r"[\p{Han}]+"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class TiktokenKind:
    """One publisher's kind: its file and class names, how words are cut, and the special tokens after the ranked ones.

    `special` gives the special tokens of a vocabulary of so many ranked tokens. `first` and `end` are a text's;
    `begins` puts the former before every text.
    """

    name: str
    files: frozenset[str]
    classes: frozenset[str]
    splitting: Splitting
    special: Callable[[int], list[str]]
    first: str | None
    end: str
    begins: bool


def _qwen(_: int) -> list[str]:
    return ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205))]


def _llama3(_: int) -> list[str]:
    reserved = [f"<|reserved_special_token_{number}|>" for number in range(251)]
    named = ["<|begin_of_text|>", "<|end_of_text|>", *reserved[:4], "<|start_header_id|>", "<|end_header_id|>"]
    return [*named, reserved[4], "<|eot_id|>", *reserved[5:]]


def _kimi(ranked: int) -> list[str]:
    return ["[BOS]", "[EOS]", *(f"<|reserved_token_{number}|>" for number in range(ranked + 2, ranked + 256))]


KINDS = (
    TiktokenKind(
        "Qwen",
        frozenset({"qwen.tiktoken"}),
        frozenset({"QWenTokenizer"}),
        SPLITTINGS["qwen2"],
        _qwen,
        None,
        "<|endoftext|>",
        False,
    ),
    TiktokenKind(
        "Llama 3",
        frozenset({"tokenizer.model"}),
        frozenset({"Llama3Tokenizer"}),
        SPLITTINGS["llama-bpe"],
        _llama3,
        "<|begin_of_text|>",
        "<|end_of_text|>",
        True,
    ),
    TiktokenKind(
        "Kimi",
        frozenset({"tiktoken.model"}),
        frozenset({"TikTokenTokenizer"}),
        Splitting(lambda: cut_by(_KIMI)),
        _kimi,
        "[BOS]",
        "[EOS]",
        False,
    ),
)
