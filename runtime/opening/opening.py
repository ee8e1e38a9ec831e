"""Open what a path leads to, whatever the format: the checkpoint, its config, its tokenizer, the files beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.errors import ConfigError
from weightloom.engine.os_errors import storage_error
from weightloom.plugins.discovery.sources import Bundle, open_bundle
from weightloom.runtime.configs.config import Config, find_config, parse
from weightloom.runtime.configs.config_text import strict_json
from weightloom.runtime.opening.kept import Kept, open_kept
from weightloom.runtime.opening.layout_record import recorded_layout

if TYPE_CHECKING:
    from weightloom.runtime.tokenizing.tokenizer import Tokenizer

GGUF = "gguf"


@dataclass(frozen=True)
class Opened:
    """A checkpoint and what belongs to it; a context manager that closes it.

    `config` says what the model is: the source's own where the file of kept tensors has it and the one beside the
    weights was made from it; `beside` is the one that lies there. `layout` is the layout that the format or a record
    settles, else None. `tokenizer` makes the tokenizer, or gives None; `side_files` gives what goes beside the weights
    when they are saved elsewhere as they are: in a `container`, all that there is.
    """

    path: Path
    checkpoint: Checkpoint
    config: Config | None
    layout: str | None
    tokenizer: Callable[[], Tokenizer | None]
    side_files: Callable[[], Mapping[str, bytes | Path]]
    beside: Config | None = None
    kept: Kept | None = None
    container: bool = False

    @property
    def folder(self) -> Path:
        """The directory that the files are in."""
        return self.path if self.path.is_dir() else self.path.parent

    def need_config(self) -> Config:
        """Give the config; raises ConfigError where there is none."""
        if self.config is None:
            raise ConfigError(
                "there is no config.json beside the weights",
                expected="a config.json that says what model this is",
                hint="download it too; `weightloom plan --rules FILE` works without",
                file=self.path,
            )
        return self.config

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self.checkpoint.close()
        if self.kept is not None:
            self.kept.file.close()


def open_path(path: str | Path) -> Opened:
    """Open a directory, a safetensors file or index, a GGUF model, or what a source of another package is for.

    Raises as `Checkpoint.open`, `open_gguf`, `find_config` and `open_bundle` do.
    """
    place = Path(path)
    bundle = open_bundle(place)
    if bundle is not None:
        return _open_bundle(place, bundle)
    return _open_gguf(place) if is_gguf(place) else _open_safetensors(place)


def is_gguf(path: Path) -> bool:
    """Say whether a path is a GGUF file, or a directory with such files and no safetensors."""
    if path.is_dir():
        suffixes = _suffixes(path)
        return ".gguf" in suffixes and ".safetensors" not in suffixes
    return path.suffix == ".gguf"


def _suffixes(folder: Path) -> set[str]:
    try:
        return {entry.suffix for entry in folder.iterdir()}
    except OSError as error:
        raise storage_error("list", folder, error) from error


def _open_safetensors(path: Path) -> Opened:
    checkpoint = Checkpoint.open(path)
    try:
        beside = find_config(path)
        kept = open_kept(path, checkpoint, beside)
    except BaseException:
        checkpoint.close()
        raise
    config = kept.config if kept is not None and kept.current else beside
    layout = kept.note.layout if kept is not None else recorded_layout(checkpoint.metadata)
    folder = path if path.is_dir() else path.parent

    def tokenizer() -> Tokenizer | None:
        from weightloom.runtime.tokenizing.tokenizer import load_tokenizer

        return load_tokenizer(folder)

    return Opened(path, checkpoint, config, layout, tokenizer, partial(_side_files, path, beside, kept), beside, kept)


def _side_files(path: Path, config: Config | None, kept: Kept | None) -> Mapping[str, bytes | Path]:
    from weightloom.runtime.opening.side_files import side_files

    mine = path.is_dir() or config is not None
    found: dict[str, bytes | Path] = dict(side_files(path if path.is_dir() else path.parent).taken) if mine else {}
    if config is not None:
        found.setdefault("config.json", config.raw)
        if config.repairs:
            found["config.json"] = config.saved
    return found if kept is None else {**found, KEPT_NAME: kept.path}


def _open_bundle(path: Path, bundle: Bundle) -> Opened:
    """Take what a source found; a tokenizer is read from the files that it carries along."""
    config = None if bundle.config is None else Config(path, bundle.config, parse(bundle.config, path))

    def tokenizer() -> Tokenizer | None:
        from weightloom.runtime.tokenizing.tokenizer import load_tokenizer

        folders = {file.parent for file in bundle.side_files.values() if isinstance(file, Path)}
        return load_tokenizer(folders.pop()) if len(folders) == 1 else None

    def beside() -> Mapping[str, bytes | Path]:
        own = {} if config is None else {"config.json": config.saved}
        return {**own, **bundle.side_files}

    layout = recorded_layout(bundle.checkpoint.metadata)
    return Opened(path, bundle.checkpoint, config, layout, tokenizer, beside, config, container=True)


def _open_gguf(path: Path) -> Opened:
    from weightloom.engine.gguf import open_gguf, read_gguf
    from weightloom.runtime.gguf.config import gguf_config

    model = read_gguf(path)
    checkpoint = open_gguf(path)
    values = gguf_config(model, checkpoint)
    raw = strict_json(values)

    def tokenizer() -> Tokenizer | None:
        from weightloom.runtime.gguf.tokenizer import gguf_tokenizer

        return gguf_tokenizer(model) if "tokenizer.ggml.model" in model.metadata else None

    def beside() -> Mapping[str, bytes | Path]:
        from weightloom.runtime.gguf.side_files import gguf_side_files

        return gguf_side_files(path)

    config = Config(model.files[0], raw, values)
    return Opened(path, checkpoint, config, GGUF, tokenizer, beside, config)
