"""Write a tiny checkpoint whose bytes follow from its tensors' names; the same on every machine, without torch.

Each tensor's data is the SHAKE-256 stream of its name, with the exponents of floats held between 2**-15 and 1
so that every value is finite. The container is written here by hand, after the safetensors format, so that the
engine's own writer is not its own judge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.reference import File, Tensor

INDEX = "model.safetensors.index.json"
Bits = np.ndarray[Any, np.dtype[Any]]
_WIDTH = {"F32": 4, "BF16": 2, "F16": 2, "I64": 8}


def tensor_bytes(name: str, tensor: Tensor) -> bytes:
    """The data of one tensor, little-endian and row-major."""
    length = prod(tensor.shape) * _WIDTH[tensor.dtype]
    stream = hashlib.shake_256((tensor.copy_of or name).encode()).digest(length)
    bits = np.frombuffer(stream, f"<u{_WIDTH[tensor.dtype]}")
    if tensor.dtype == "I64":
        return (bits & np.uint64(0xFFFF)).tobytes()
    mantissa = {"F32": 23, "BF16": 7, "F16": 10}[tensor.dtype]
    return _tame(bits, mantissa, lowest=0 if tensor.dtype == "F16" else 112).tobytes()


def _tame(bits: Bits, mantissa: int, lowest: int) -> Bits:
    """Keep sign, mantissa and four bits of the exponent, counted from `lowest`."""
    one = bits.dtype.type
    sign = one(1) << one(8 * bits.dtype.itemsize - 1)
    exponent = one(lowest) + ((bits >> one(mantissa)) & one(15))
    return np.asarray((bits & (sign | one((1 << mantissa) - 1))) | (exponent << one(mantissa)))


def file_bytes(tensors: Mapping[str, Tensor], data: Mapping[str, bytes]) -> bytes:
    """One safetensors file: length, header padded to 8 bytes, data; tensors in the order given."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, tensor in tensors.items():
        end = start + len(data[name])
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw + b"".join(data[name] for name in tensors)


def index_bytes(files: Mapping[str, Mapping[str, Tensor]]) -> bytes:
    """The index of a sharded checkpoint."""
    total = sum(prod(t.shape) * _WIDTH[t.dtype] for tensors in files.values() for t in tensors.values())
    where = {name: file for file, tensors in files.items() for name in tensors}
    return (json.dumps({"metadata": {"total_size": total}, "weight_map": where}, indent=2) + "\n").encode()


def write_checkpoint(files: Mapping[str, Mapping[str, Tensor]], directory: Path) -> tuple[dict[str, File], str | None]:
    """Write all files, and an index if there are several; give what was written, with every sha256 filled in."""
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, File] = {}
    for file, tensors in files.items():
        data = {name: tensor_bytes(name, tensor) for name, tensor in tensors.items()}
        content = file_bytes(tensors, data)
        (directory / file).write_bytes(content)
        stamped = {name: replace(tensor, sha256=sha256(data[name])) for name, tensor in tensors.items()}
        written[file] = File(sha256(content), stamped)
    if len(files) == 1:
        return written, None
    index = index_bytes(files)
    (directory / INDEX).write_bytes(index)
    return written, sha256(index)


def sha256(data: bytes | memoryview) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()
