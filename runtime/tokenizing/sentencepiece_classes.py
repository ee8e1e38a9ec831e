"""Tokenizer classes whose ids are those of the SentencePiece model as it is stored, and what they put around a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weightloom.runtime.tokenizing.sentencepiece_model import BPE, SentencePieceModel
from weightloom.runtime.tokenizing.vocabulary_file import bad_vocabulary


@dataclass(frozen=True, slots=True)
class Use:
    """Whether the begin and end tokens go around a text, and the tokens that come after the model's pieces."""

    begins: bool
    ends: bool
    further: tuple[str, ...] = ()


def _llama(_: SentencePieceModel, __: Any) -> Use:
    return Use(True, False)


def _t5(_: SentencePieceModel, extra: Any) -> Use:
    count = 100 if extra is None else extra
    return Use(False, True, tuple(f"<extra_id_{number}>" for number in reversed(range(count))))


def _unstated(model: SentencePieceModel, _: Any) -> Use:
    """As llama.cpp does: BPE models are Llama's relatives, unigram ones T5's."""
    return Use(True, False) if model.algorithm == BPE else Use(False, True)


_CLASSES: dict[str | None, Callable[[SentencePieceModel, Any], Use]] = {
    None: _unstated,
    "LlamaTokenizer": _llama,
    "CodeLlamaTokenizer": _llama,
    "GemmaTokenizer": _llama,
    "InternLM2Tokenizer": _llama,
    "BaichuanTokenizer": _llama,
    "MistralCommonTokenizer": _llama,
    "T5Tokenizer": _t5,
}


def sentencepiece_use(model: SentencePieceModel, class_name: str | None, extra: Any) -> Use:
    """Give how a class uses its model; `extra` is the config's `extra_ids`, a number or None.

    Raises ConfigError for a class that is not known to keep the ids of the file: several number tokens anew.
    """
    plain = class_name.removesuffix("Fast") if class_name is not None else None
    use = _CLASSES.get(plain)
    if use is None:
        raise bad_vocabulary(
            model.file,
            f"it is not known whether {class_name} has the ids of this file",
            f"no class, or one of {', '.join(filter(None, _CLASSES))}",
            "tokenizer_class",
        )
    if extra is not None and (type(extra) is not int or not 0 <= extra <= 1 << 16):
        raise bad_vocabulary(model.file, f"extra_ids is {extra!r:.40}", "a number of tokens", "extra_ids")
    return use(model, extra)
