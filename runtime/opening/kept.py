"""The file of kept tensors beside weights: opened, held against them, and read as the source that it records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.checkpoints.discovery import KEPT_NAME, SINGLE_NAME
from weightloom.engine.checkpoints.kept_names import kept_names
from weightloom.engine.checkpoints.kept_note import KeptNote, bytes_digest, read_note, specs_digest
from weightloom.engine.checkpoints.recorded import check_seal, recorded_checkpoint, recorded_config
from weightloom.engine.errors import CheckpointError
from weightloom.runtime.configs.config import Config, parse


@dataclass(frozen=True)
class Kept:
    """What is kept beside weights: the file, what it says of itself, and the source as it was.

    `config` is the source's own; `current` says whether the config beside the weights is still the one that was
    written for it, so that the source's own speaks for both.
    """

    path: Path
    file: Checkpoint
    note: KeptNote
    source: Checkpoint
    config: Config | None
    current: bool

    @property
    def names(self) -> list[str]:
        """The tensors of the source that are in it."""
        return kept_names(self.file.tensors)


def open_kept(path: Path, weights: Checkpoint, config: Config | None) -> Kept | None:
    """Open the file of kept tensors that lies beside the weights at `path`; None where there is none.

    Raises CheckpointError for one that belongs to other weights or is damaged, StorageError where reading fails.
    """
    folder = path if path.is_dir() else path.parent
    place = folder / KEPT_NAME
    # A link whose file is not there yet is no absence: what it keeps would be lost without a word.
    if path.name == KEPT_NAME or not (place.exists() or place.is_symlink()):
        return None
    file = Checkpoint.from_files([place])
    try:
        note = read_note(file.metadata, str(place))
        if note.weights != specs_digest(weights.tensors):
            if not (path.is_dir() or path.name.endswith(".json") or path.name == SINGLE_NAME):
                file.close()
                return None
            raise _foreign(place, weights)
        check_seal(file)
        raw = recorded_config(file)
        own = None if raw is None else Config(folder / "config.json", raw, parse(raw, place))
        current = own is not None and (config is None or bytes_digest(config.raw) == note.config)
        return Kept(place, file, note, recorded_checkpoint(file, note, folder), own, current)
    except BaseException:
        file.close()
        raise


def _foreign(place: Path, weights: Checkpoint) -> CheckpointError:
    return CheckpointError(
        f"the kept tensors belong to other weights than these {len(weights.tensors)} tensors",
        expected="weights of the names, dtypes and shapes that they were kept beside",
        hint=f"put the right {KEPT_NAME} beside the weights, or remove it to go on without what it keeps",
        file=place,
    )
