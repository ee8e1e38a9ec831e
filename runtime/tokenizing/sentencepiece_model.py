"""SentencePiece `.model` files: pieces with scores and types, and how a text is prepared for them.

Format: `sentencepiece_model.proto` (a ModelProto), of which only what encoding and decoding need is read. What the
format's defaults are (a space put before every text, runs of spaces made one) is the default here too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.show import listed
from weightloom.runtime.tokenizing.character_map import BadMap, check_character_map
from weightloom.runtime.tokenizing.protobuf import BYTES, FIXED32, VARINT, BadMessage, as_float, as_signed, read_message
from weightloom.runtime.tokenizing.vocabulary_file import bad_vocabulary, read_vocabulary_bytes

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE = 1, 2
_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3
_Value = int | bytes
_EXPECTED = "a SentencePiece model as sentencepiece writes it"


@dataclass(frozen=True, slots=True)
class Piece:
    """A token's text, its score (log-probability, or minus the order of merging) and its type."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is done to a text first; `characters` is the compiled map of characters, empty for none."""

    characters: bytes
    prefix: bool
    single_spaces: bool


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """A model file's content: pieces by id, UNIGRAM or BPE, and the ids of the tokens with a role (None: no such)."""

    file: Path
    pieces: tuple[Piece, ...]
    algorithm: int
    byte_fallback: bool
    preparation: Preparation
    unknown: int
    bos: int | None
    eos: int | None
    pad: int | None

    def texts(self, *kinds: int) -> list[str]:
        """Give the pieces of some types."""
        return [piece.text for piece in self.pieces if piece.kind in kinds]

    def text(self, number: int | None) -> str | None:
        """Give the piece of an id, None for none."""
        return None if number is None else self.pieces[number].text


def read_sentencepiece(file: Path) -> SentencePieceModel:
    """Read a `.model` file.

    Raises ConfigError for bytes that are no such message, for pieces that are there twice or do not fit the settings,
    and for settings that no known model uses (words or characters as pieces, spaces kept or put last, unused pieces).
    """
    try:
        return _checked(_parsed(file, read_vocabulary_bytes(file)))
    except (BadMessage, BadMap, UnicodeDecodeError) as error:
        raise bad_vocabulary(file, f"is no SentencePiece model: {error}", _EXPECTED) from error


def _parsed(file: Path, data: bytes) -> SentencePieceModel:
    parts: dict[int, list[bytes]] = {_PIECE: [], _TRAINER: [], _NORMALIZER: []}
    for number, kind, value in read_message(data):
        if number in parts:
            parts[number].append(_bytes(number, kind, value))
    trainer, normalizer = (_settings(b"".join(parts[part]), part) for part in (_TRAINER, _NORMALIZER))
    pieces = tuple(_piece(data) for data in parts[_PIECE])
    if _flag(trainer, 24, False) or not _flag(normalizer, 5, True):
        raise bad_vocabulary(file, "spaces are kept as they are or put after words", "spaces put before words as ▁")
    return SentencePieceModel(
        file,
        pieces,
        _number(trainer, 3, UNIGRAM),
        _flag(trainer, 35, False),
        Preparation(_block(normalizer, 2), _flag(normalizer, 3, True), _flag(normalizer, 4, True)),
        next((number for number, piece in enumerate(pieces) if piece.kind == UNKNOWN), 0),
        *(_role(trainer, *role, pieces) for role in ((41, 1), (42, 2), (43, -1))),
    )


# The fields that are read, with their wire types.
_KNOWN = {
    _TRAINER: {3: VARINT, 24: VARINT, 35: VARINT, 40: VARINT, 41: VARINT, 42: VARINT, 43: VARINT},
    _NORMALIZER: {2: BYTES, 3: VARINT, 4: VARINT, 5: VARINT},
}


def _settings(data: bytes, part: int) -> Mapping[int, _Value]:
    """Give the fields of a message that are read; of a field that is there twice, the last one counts."""
    found: dict[int, _Value] = {}
    for number, kind, value in read_message(data):
        wanted = _KNOWN[part].get(number)
        if wanted is not None and wanted != kind:
            raise BadMessage(f"field {part}.{number} of wire type {kind}")
        if wanted is not None:
            found[number] = value
    return found


def _piece(data: bytes) -> Piece:
    text, score, kind = "", 0.0, NORMAL
    for number, wire, value in read_message(data):
        if number == 1:
            text = _bytes(number, wire, value).decode()
        elif (number, wire) == (2, FIXED32):
            score = as_float(value)
        elif (number, wire) == (3, VARINT):
            kind = as_signed(value)
        elif number in (2, 3):
            raise BadMessage(f"field {_PIECE}.{number} of wire type {wire}")
    return Piece(text, score, kind)


def _role(trainer: Mapping[int, _Value], field: int, default: int, pieces: tuple[Piece, ...]) -> int | None:
    """Give the id of the token with a role, None where the model has no such token."""
    number = _number(trainer, field, default)
    return number if 0 <= number < len(pieces) and pieces[number].kind in (CONTROL, USER_DEFINED) else None


def _checked(model: SentencePieceModel) -> SentencePieceModel:
    counts = Counter(piece.text for piece in model.pieces)
    twice = [text for text, count in counts.items() if count > 1]
    kinds = {piece.kind for piece in model.pieces}
    bytes_there = set(model.texts(BYTE)) == {f"<0x{byte:02X}>" for byte in range(256)}
    problems = {
        f"the algorithm is {model.algorithm}": model.algorithm not in (UNIGRAM, BPE),
        "there are no pieces": not model.pieces,
        f"pieces there twice: {listed(twice)}": bool(twice),
        "a piece is empty": "" in counts,
        "a piece is of an unknown type, or not used": not kinds <= {NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE},
        "there is not one piece for what is unknown": len(model.texts(UNKNOWN)) != 1,
        "a score is no number": any(not math.isfinite(piece.score) for piece in model.pieces),
        "the pieces for bytes are not all there": model.byte_fallback != bytes_there,
    }
    for seen, wrong in problems.items():
        if wrong:
            raise bad_vocabulary(model.file, seen, f"{_EXPECTED}: unigram or BPE, each piece once, one of them unknown")
    if model.preparation.characters:
        check_character_map(model.preparation.characters)
    return model


def _bytes(number: int, kind: int, value: _Value) -> bytes:
    if kind != BYTES or not isinstance(value, bytes):
        raise BadMessage(f"field {number} of wire type {kind}")
    return value


def _block(settings: Mapping[int, _Value], number: int) -> bytes:
    value = settings.get(number, b"")
    return value if isinstance(value, bytes) else b""


def _number(settings: Mapping[int, _Value], number: int, default: int) -> int:
    return as_signed(settings.get(number, default))


def _flag(settings: Mapping[int, _Value], number: int, default: bool) -> bool:
    return bool(settings.get(number, default))
