"""Where a model comes from: the checkpoint, its config, its tokenizer, its layout, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.checkpoint import Checkpoint
from weightloom.engine.errors import ConfigError
from weightloom.runtime.config import find_config
from weightloom.runtime.side_files import side_files
from weightloom.runtime.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Source:
    """What `load` starts from; `tokenizer` makes it, or gives None where there is none.

    `side_files` gives what a save puts beside the weights: name -> content, or the file to copy.
    """

    path: Path
    checkpoint: Checkpoint
    config: Mapping[str, Any]
    layout: str
    tokenizer: Callable[[], Tokenizer | None]
    side_files: Callable[[], Mapping[str, bytes | Path]]

    @property
    def folder(self) -> Path:
        """The directory that the files are in."""
        return self.path if self.path.is_dir() else self.path.parent


def open_source(path: Path) -> Source:
    """Open a directory, a safetensors file or index, or a GGUF model.

    Raises as `Checkpoint.open` and `open_gguf` do; ConfigError where no config says what model it is.
    """
    return _open_gguf(path) if is_gguf(path) else _open_safetensors(path)


def is_gguf(path: Path) -> bool:
    """Say whether a path is a GGUF file, or a directory with such files and no safetensors."""
    if path.is_file():
        return path.suffix == ".gguf"
    names = [entry.suffix for entry in path.iterdir()] if path.is_dir() else []
    return ".gguf" in names and ".safetensors" not in names


def _open_safetensors(path: Path) -> Source:
    checkpoint = Checkpoint.open(path)
    config = find_config(path)
    if config is None:
        raise ConfigError(
            "there is no config.json beside the weights",
            expected="a config.json that says what model this is",
            hint="download it too; `weightloom plan --rules FILE` works without",
            file=path,
        )
    folder = path if path.is_dir() else path.parent
    beside: dict[str, bytes | Path] = dict(side_files(folder).taken) if path.is_dir() else {}
    beside.setdefault("config.json", config.raw)
    return Source(path, checkpoint, config.values, "hf", lambda: load_tokenizer(folder), lambda: beside)


def _open_gguf(path: Path) -> Source:
    from weightloom.engine.gguf import open_gguf, read_gguf
    from weightloom.runtime.gguf_config import gguf_config
    from weightloom.runtime.gguf_side_files import gguf_side_files
    from weightloom.runtime.gguf_tokenizer import gguf_tokenizer

    model = read_gguf(path)
    checkpoint = open_gguf(path)

    def tokenizer() -> Tokenizer | None:
        return gguf_tokenizer(model) if "tokenizer.ggml.model" in model.metadata else None

    return Source(path, checkpoint, gguf_config(model, checkpoint), "gguf", tokenizer, lambda: gguf_side_files(path))
