"""Tiny GGUF files, written from the format's description and not with the reader's help."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TYPE_NUMBERS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q8_0": 8, "Q6_K": 14, "I8": 24, "BF16": 30}
TYPE_NUMBERS |= {"Q5_1": 7, "Q4_K": 12, "Q5_K": 13, "MXFP4": 39}
BLOCKS = {"F32": (1, 4), "F16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q8_0": (32, 34)}
BLOCKS |= {
    "Q5_1": (32, 24),
    "MXFP4": (32, 17),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "I8": (1, 1),
    "BF16": (1, 2),
}
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q6_K": (208,)}
HALVES |= {"Q4_K": (0, 2), "Q5_K": (0, 2)}

# The keys of a small llama.
KEYS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 2048,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.rope.freq_base": 500000.0,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": 16,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}


@dataclass(frozen=True)
class U:
    """A number with its GGUF type letter: U("I", 3) is a UINT32."""

    letter: str
    value: Any


_CODES = {"B": 0, "b": 1, "H": 2, "h": 3, "I": 4, "i": 5, "f": 6, "Q": 10, "q": 11, "d": 12}


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def typed(value: Any) -> tuple[int, bytes]:
    """Give the type code and the bytes of a value; whole numbers are UINT32, floats FLOAT32."""
    if isinstance(value, U):
        return _CODES[value.letter], struct.pack(f"<{value.letter}", value.value)
    if isinstance(value, bool):
        return 7, bytes([value])
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, text(value)
    items = [typed(each) for each in value]
    code = items[0][0] if items else 4
    return 9, struct.pack("<IQ", code, len(items)) + b"".join(raw for _, raw in items)


@dataclass(frozen=True)
class Tensor:
    """`shape` has the rows first; `data` are the bytes as they are in the file."""

    name: str
    type: str
    shape: tuple[int, ...]
    data: bytes


def array(name: str, values: Any) -> Tensor:
    found = np.asarray(values, np.float32)
    return Tensor(name, "F32", found.shape, found.tobytes())


def noise(name: str, kind: str, shape: tuple[int, ...], seed: int = 0, scale: float = 0.01) -> Tensor:
    """Give random codes with finite scales (and minima) of about `scale`."""
    block, nbytes = BLOCKS[kind]
    count = int(np.prod(shape)) // block
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (count, nbytes), np.uint8)
    for at in HALVES.get(kind, ()):
        raw[:, at : at + 2] = (rng.standard_normal(count) * scale).astype("<f2")[:, None].view(np.uint8)
    return Tensor(name, kind, shape, raw.tobytes())


def gguf_bytes(
    metadata: Mapping[str, Any], tensors: Sequence[Tensor], *, version: int = 3, order: str = "<", alignment: int = 32
) -> bytes:
    keys = b"".join(text(key) + struct.pack("<I", typed(value)[0]) + typed(value)[1] for key, value in metadata.items())
    infos, data = b"", b""
    for tensor in tensors:
        data += b"\0" * (-len(data) % alignment)
        infos += text(tensor.name) + struct.pack("<I", len(tensor.shape))
        infos += struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape[::-1])
        infos += struct.pack("<IQ", TYPE_NUMBERS[tensor.type], len(data))
        data += tensor.data
    head = b"GGUF" + struct.pack(f"{order}I", version) + struct.pack(f"{order}QQ", len(tensors), len(metadata))
    head += keys + infos
    return head + b"\0" * (-len(head) % alignment) + data


def write_gguf(path: Path, metadata: Mapping[str, Any], tensors: Sequence[Tensor], **options: Any) -> Path:
    path.write_bytes(gguf_bytes(metadata, tensors, **options))
    return path
