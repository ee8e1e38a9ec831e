"""Safetensors files put together byte by byte, right or wrong, without the code under test."""

from __future__ import annotations

import json
from pathlib import Path


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def file_bytes(header: object, data: bytes = b"") -> bytes:
    """`header` is a JSON value, or the header's bytes or text as they are."""
    raw = header if isinstance(header, bytes) else header.encode() if isinstance(header, str) else None
    raw = json.dumps(header).encode() if raw is None else raw
    return len(raw).to_bytes(8, "little") + raw + data


def write(path: Path, header: object, data: bytes = b"") -> Path:
    path.write_bytes(file_bytes(header, data))
    return path


def f32(names: str, value: float = 0.0) -> tuple[dict[str, object], bytes]:
    """One F32 `[1]` tensor for each letter."""
    import struct

    header = {name: entry("F32", [1], 4 * k, 4 * k + 4) for k, name in enumerate(names)}
    return header, struct.pack("<f", value) * len(names)


def write_f32(path: Path, names: str, value: float = 0.0) -> Path:
    return write(path, *f32(names, value))


def write_index(folder: Path, weight_map: object, name: str = "model.safetensors.index.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": weight_map}))
    return path
