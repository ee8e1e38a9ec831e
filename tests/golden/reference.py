"""References: what a tiny checkpoint holds, and the parameters that the reference implementation loads from it.

One JSON file a checkpoint, made by `make oracle`. The checkpoint's bytes are not committed: they follow from the
names (see `make.py`), so that a test can write the checkpoint and compare without the reference implementation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Tensor:
    """Dtype (as safetensors spells it), shape and sha256 of one tensor; `copy_of` names one with the same bytes."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str = ""
    copy_of: str | None = None


@dataclass(frozen=True, slots=True)
class File:
    """One weight file: its sha256 and its tensors in the order of header and data."""

    sha256: str
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Node:
    """One sub-model in depth-first order: module path, class name, model type."""

    path: str
    class_name: str
    model_type: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A checkpoint and the parameters that were loaded from it; `config` is its config.json."""

    case: str
    transformers: str
    base_model_prefix: str
    nodes: tuple[Node, ...]
    config: Mapping[str, Any]
    index_sha256: str | None
    files: Mapping[str, File]
    params: Mapping[str, Tensor]


def read_reference(path: Path) -> Reference:
    """Read one reference."""
    found = json.loads(path.read_text())
    files = {name: File(file["sha256"], _tensors(file["tensors"])) for name, file in found.pop("files").items()}
    nodes = tuple(Node(**node) for node in found.pop("nodes"))
    return Reference(**{**found, "nodes": nodes, "files": files, "params": _tensors(found["params"])})


def reference_text(reference: Reference) -> str:
    """Give a reference as JSON, one tensor a line."""
    return "{\n" + ",\n".join(_lines(asdict(reference))) + "\n}\n"


def reference_paths() -> list[Path]:
    """All committed references."""
    return sorted(FOLDER.glob("*.json"))


def _tensors(found: Mapping[str, list[Any]]) -> dict[str, Tensor]:
    return {name: Tensor(row[0], tuple(row[1]), *row[2:]) for name, row in found.items()}


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    for key, value in found.items():
        if key == "files":
            files = (f"{json.dumps(name)}: {_file_text(file)}" for name, file in value.items())
            yield '"files": {\n' + ",\n".join(files) + "\n}"
        elif key == "params":
            yield '"params": ' + _rows(value)
        else:
            yield f"{json.dumps(key)}: {json.dumps(value)}"


def _file_text(file: Mapping[str, Any]) -> str:
    return f'{{"sha256": {json.dumps(file["sha256"])}, "tensors": {_rows(file["tensors"])}}}'


def _rows(tensors: Mapping[str, Mapping[str, Any]]) -> str:
    rows = (f"{json.dumps(name)}: {json.dumps(_row(tensor))}" for name, tensor in tensors.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def _row(tensor: Mapping[str, Any]) -> list[Any]:
    row = [tensor["dtype"], tensor["shape"], tensor["sha256"]]
    return row if tensor["copy_of"] is None else [*row, tensor["copy_of"]]
