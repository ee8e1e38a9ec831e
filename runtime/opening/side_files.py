"""What travels with a conversion beside the weights: everything but what holds or describes the old weights.

Files are copied, never run or read for meaning. A link to a file is followed (a hub's cache is made of them), a
link to a directory is not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.checkpoints.foreign import FOREIGN_SUFFIXES
from weightloom.engine.os_errors import storage_error

WEIGHTS = "weights"
DESCRIBES = "describes the old weights"
_WEIGHT_SUFFIXES = (
    *(".safetensors", *FOREIGN_SUFFIXES),
    *(".ot", ".tflite", ".pb", ".onnx_data", ".onnx.data", ".mlmodel", ".mar", ".nemo", ".pkl", ".pickle", ".npy"),
)
# Written by quantization tools beside the config; each names the old tensors and how they were packed.
_OLD_WEIGHTS = {"hf_quant_config.json", "quantize_config.json", "quant_config.json", "quantization_config.json"}
_OWN_PLACES = {"__pycache__", "node_modules"}


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A file that does not travel, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Relative name -> path or content for what travels (in order), and what does not."""

    taken: tuple[tuple[str, bytes | Path], ...]
    left: tuple[LeftBehind, ...]


def side_files(folder: Path, own: Collection[Path] = ()) -> SideFiles:
    """Sort the files of a checkpoint's directory; `own`, those of the checkpoint, are neither taken nor left.

    Nor is the file of kept tensors, which goes with these weights alone.

    Raises StorageError where the system refuses to look.
    """
    taken: list[tuple[str, bytes | Path]] = []
    left: list[LeftBehind] = []
    modules = _module_folders(folder)
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if path in own or name == KEPT_NAME:
            continue
        why = _no_file(path) or (None if Path(name).parent.as_posix() in modules else _why_not(path.name))
        if why is None:
            taken.append((name, path))
        else:
            left.append(LeftBehind(name, why))
    return SideFiles(tuple(taken), tuple(left))


def _no_file(path: Path) -> str | None:
    """Say what stands in the place of a file; None where it is one."""
    if path.is_file():
        return None
    return "a link to a directory" if path.is_dir() else "not a file" if path.exists() else "a link to nothing"


def _why_not(name: str) -> str | None:
    if name.endswith(_WEIGHT_SUFFIXES):
        return WEIGHTS
    if name.endswith(".index.json") or name in _OLD_WEIGHTS:
        return DESCRIBES
    return None


def _module_folders(folder: Path) -> frozenset[str]:
    """Name the sub-directories that modules.json (of sentence-transformers) lists: models of their own.

    They come after this one, such as a dense layer, and their weights are theirs. A list that cannot be read
    names none.
    """
    steps = folder / "modules.json"
    try:
        listed = json.loads(steps.read_bytes()) if steps.is_file() else ()
        paths = {module["path"] for module in listed if module["path"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return frozenset()
    return frozenset(path for path in paths if isinstance(path, str))


def _files(folder: Path) -> Iterator[Path]:
    """Yield what is no directory, sorted, sub-directories included; hidden ones (.git, .cache) are left alone."""
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name not in _OWN_PLACES:
                yield from _files(path)
        elif ".weightloom-" not in entry.name:
            yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise storage_error("list", folder, error) from error
