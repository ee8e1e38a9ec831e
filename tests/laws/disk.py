"""Real files for a world: one file, shards with an index, loose shards; written byte by byte, without the engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.laws.worlds import Tensor, Tensors, tensor

Files = dict[str, bytes]


def shard_bytes(
    header_order: Sequence[str],
    data_order: Sequence[str],
    tensors: Tensors,
    metadata: Mapping[str, str] | None,
    style: Mapping[str, Any],
    padding: int,
) -> bytes:
    """A safetensors file whose header may be in another order than its data."""
    places: dict[str, list[int]] = {}
    data = b""
    for name in data_order:
        places[name] = [len(data), len(data) + len(tensors[name].data)]
        data += tensors[name].data
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    for name in header_order:
        each = tensors[name]
        header[name] = {"dtype": each.dtype, "shape": list(each.shape), "data_offsets": places[name]}
    raw = json.dumps(header, **style).encode() + b" " * padding
    return len(raw).to_bytes(8, "little") + raw + data


STYLES: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")},
    {"indent": 1},
    {"ensure_ascii": False},
)


@st.composite
def shards(draw: st.DrawFn, tensors: Tensors) -> bytes:
    names = sorted(tensors)
    metadata = draw(st.sampled_from((None, {}, {"format": "pt"}, {"format": "mlx", "é": "\u2028"})))
    header_order = draw(st.permutations(names))
    data_order = draw(st.sampled_from((header_order, draw(st.permutations(names)))))
    style, padding = draw(st.sampled_from(STYLES)), draw(st.integers(0, 9))
    return shard_bytes(header_order, data_order, tensors, metadata, style, padding)


@st.composite
def layouts(draw: st.DrawFn, tensors: Tensors) -> Files:
    """The files of a checkpoint that holds these tensors; an index may pass over second versions of some."""
    kind = draw(st.sampled_from(("single", "indexed", "loose")))
    if kind == "single":
        return {"model.safetensors": draw(shards(tensors))}
    count = draw(st.integers(1, 3))
    owner = {name: draw(st.integers(0, count - 1)) for name in sorted(tensors)}
    parts: list[dict[str, Tensor]] = [{n: tensors[n] for n, o in owner.items() if o == k} for k in range(count)]
    files = [f"model-{k + 1:05d}-of-{count:05d}.safetensors" for k in range(count)]
    if kind == "indexed" and count > 1 and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(tensors)))
        other = parts[(owner[name] + 1) % count]
        # A file of which the index takes nothing is not read, and not a part of the checkpoint.
        other |= {name: tensor("F32", (2,), 7)} if other else {}
    found = {file: draw(shards(part)) for file, part in zip(files, parts, strict=True) if part}
    if kind == "indexed":
        index = {"weight_map": {name: files[k] for name, k in owner.items()}, "metadata": {"total_size": 1, "x": [1]}}
        found["model.safetensors.index.json"] = json.dumps(index, **draw(st.sampled_from(STYLES))).encode()
    return found


def write_files(folder: Path, files: Files) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
