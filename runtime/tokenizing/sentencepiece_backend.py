"""A SentencePiece model as one object of the tokenizers library, with the same ids."""

from __future__ import annotations

from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from weightloom.runtime.tokenizing.merges import implied_merges
from weightloom.runtime.tokenizing.sentencepiece_model import (
    BPE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Preparation,
    SentencePieceModel,
)
from weightloom.runtime.tokenizing.vocabulary_file import built, found_whole

# SentencePiece's sign for a space.
SPACE = "\u2581"


def sentencepiece_backend(model: SentencePieceModel) -> Tokenizer:
    """Make the tokenizer; nothing is put around a text. Raises ConfigError for pieces that the library refuses.

    A text's prefix goes before its first word, not after a special token in its midst. Control pieces are found whole
    in a text, as a prompt made from a template needs; SentencePiece itself never finds them. Of two ways to
    cut a text that are equally likely (the same pieces in another order), rounding may choose the other one. No prefix
    goes before a text that begins with a piece of the user, so that prompts are the same after a special token.
    """
    return built(model.file, _backend, model)


def _backend(model: SentencePieceModel) -> Tokenizer:
    backend = Tokenizer(_bpe(model) if model.algorithm == BPE else _unigram(model))
    backend.normalizer = normalizers.Sequence(_preparation(model))
    if model.preparation.prefix:
        backend.pre_tokenizer = _prefix()
    backend.decoder = decoders.Sequence(_back(model))
    found_whole(backend, model.texts(CONTROL, UNKNOWN), special=True)
    # SentencePiece looks for them in the prepared text.
    found_whole(backend, model.texts(USER_DEFINED), special=False, normalized=True)
    return backend


def _bpe(model: SentencePieceModel) -> models.BPE:
    ids = {piece.text: number for number, piece in enumerate(model.pieces)}
    merged = sorted((p for p in model.pieces if p.kind in (NORMAL, USER_DEFINED)), key=lambda piece: -piece.score)
    return models.BPE(
        vocab=ids,
        merges=implied_merges(ids, (piece.text for piece in merged)),
        unk_token=model.text(model.unknown),
        fuse_unk=True,
        byte_fallback=model.byte_fallback,
    )


def _unigram(model: SentencePieceModel) -> models.Unigram:
    pieces = [(piece.text, piece.score) for piece in model.pieces]
    return models.Unigram(pieces, model.unknown, model.byte_fallback)


def _preparation(model: SentencePieceModel) -> list[Any]:
    asked = model.preparation
    characters = [normalizers.Precompiled(asked.characters)] if asked.characters else []
    spaces = normalizers.Replace(" ", SPACE)
    if not asked.single_spaces:
        return [*characters, spaces]
    return [*characters, *_single_spaces(asked)] if asked.prefix else [*characters, *_single_spaces(asked), spaces]


def _single_spaces(asked: Preparation) -> list[Any]:
    """Make runs of spaces one; a first one stays where a prefix would be put, to be that prefix."""
    end = normalizers.Replace(Regex(f"[ {SPACE}]+\\z"), "")
    start = [] if asked.prefix else [normalizers.Replace(Regex(r"\A +"), "")]
    return [end, *start, normalizers.Replace(Regex(" {2,}"), " ")]


def _prefix() -> Any:
    """Put a space before the first word, then make all spaces the sign.

    The library's step adds none to a text that begins with its sign. With a plain space as the sign, that is a text
    whose first space is to be the prefix; where spaces count, the prepared text has no plain ones.
    """
    first = pre_tokenizers.Metaspace(replacement=" ", prepend_scheme="first", split=False)
    return pre_tokenizers.Sequence([first, pre_tokenizers.Metaspace(SPACE, prepend_scheme="never", split=False)])


def _back(model: SentencePieceModel) -> list[Any]:
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return [*steps, decoders.Strip(" ", 1, 0)] if model.preparation.prefix else steps
