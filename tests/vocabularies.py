"""Small vocabularies of each kind, written as their formats say; and byte merges done the slow, plain way."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
WORDS = [b"th", b"the", b" the", b"in", b"ing", b"aa", b"aaa", b"\xe6\x9d", b"\xe6\x9d\xb1", b" t", b"12"]


def varint(number: int) -> bytes:
    low, rest = number & 127, (number & (1 << 64) - 1) >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def piece(text: str, score: float = 0.0, kind: int = NORMAL) -> bytes:
    return block(1, block(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))


def sentencepiece_bytes(
    pieces: Sequence[bytes],
    trainer: Mapping[int, int] | None = None,
    normalizer: Mapping[int, int] | None = None,
) -> bytes:
    """Make a model of pieces; settings by the numbers of their fields (trainer 3: 1 unigram, 2 BPE)."""
    settings = [b"".join(number(*item) for item in (part or {}).items()) for part in (trainer, normalizer)]
    return b"".join(pieces) + block(2, settings[0]) + block(3, settings[1])


def llama_like(*further: bytes) -> list[bytes]:
    """Give the pieces of a BPE model with bytes."""
    special = [piece("<unk>", 0, UNKNOWN), piece("<s>", 0, CONTROL), piece("</s>", 0, CONTROL)]
    every_byte = [piece(f"<0x{byte:02X}>", 0, BYTE) for byte in range(256)]
    made = ["▁t", "in", "he", "▁the", "ing", "aa"]
    letters = ["▁", "t", "h", "e", "i", "n", "g", "a", "x"]
    scored = [piece(text, -float(rank)) for rank, text in enumerate([*made, *letters])]
    return [*special, *every_byte, *scored, *further]


def character_map() -> bytes:
    """Make a compiled map that turns "a" into "b": a trie of 512 units with one step and its leaf."""
    units = [0] * 512
    step, leaf = 0x100 ^ ord("a"), 0x1F0
    units[0] = 0x100 << 10
    units[step] = (step ^ leaf) << 10 | 1 << 8 | ord("a")
    units[leaf] = 1 << 31
    return struct.pack("<513I", 2048, *units) + b"b\0"


LLAMA = {3: 2, 35: 1}
AS_IS = {4: 0}


def ranked() -> list[bytes]:
    return [*(bytes([byte]) for byte in range(256)), *WORDS]


def tekken(**changes: Any) -> dict[str, Any]:
    """Give the content of a tekken.json with 10 special tokens; None takes a field out."""
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate([*ranked(), b"left out"])
    ]
    config = {
        "pattern": r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+",
        "num_vocab_tokens": len(vocab),
        "default_vocab_size": len(ranked()) + 10,
        "default_num_special_tokens": 10,
        "version": "v7",
    }
    special = [{"rank": rank, "token_str": text} for rank, text in enumerate(["<unk>", "<s>", "</s>", "[INST]"])]
    content = {"config": config, "vocab": vocab, "special_tokens": special, **changes}
    return {key: value for key, value in content.items() if value is not None}


def write_tekken(folder: Path, **changes: Any) -> Path:
    (folder / "tekken.json").write_text(json.dumps(tekken(**changes)))
    return folder


def tiktoken_bytes(tokens: Sequence[bytes] | None = None) -> bytes:
    listed = ranked() if tokens is None else tokens
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(listed))


def merged(word: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """Merge the neighbours of lowest rank, the first of equals, until none are a token together."""
    parts = [bytes([byte]) for byte in word] if word not in ranks else [word]
    while True:
        pairs = [(ranks[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not pairs:
            return [ranks[part] for part in parts]
        at = min(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
