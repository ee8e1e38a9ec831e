"""save_arrays: a file of arrays with others beside it; at every fault the old directory or the new one is there."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.engine.fault_shim import CountingFiles, Crash, recover
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.disk.files import Files
from weightloom.engine.errors import CheckpointError, StorageError, UsageError
from weightloom.engine.saving.arrays import save_arrays

OLD, NEW = {"a": mx.zeros((2, 2))}, {"b.10": mx.ones((3,), mx.bfloat16), "b.2": np.arange(4)}
BESIDE = {"config.json": b"{}"}


def written(folder: Path) -> str | None:
    """Say which of the two is there, whole, with what lay beside it; None where nothing is."""
    if not folder.exists():
        return None
    assert (folder / "notes.txt").read_text() == "mine"
    (file,) = folder.glob("*.safetensors")
    with Checkpoint.open(file) as found:
        names = set(found.tensors)
    assert names in (set(OLD), set(NEW)) and (names == set(OLD) or (folder / "config.json").read_bytes() == b"{}")
    return "old" if names == set(OLD) else "new"


def old(folder: Path) -> Path:
    save_arrays(OLD, folder / "old.safetensors")
    (folder / "notes.txt").write_text("mine")
    return folder


def replace(folder: Path, files: Files) -> None:
    save_arrays(
        NEW,
        folder / "new.safetensors",
        replaced=("old.safetensors", "new.safetensors"),
        overwrite=True,
        side_files=BESIDE,
        metadata={"format": "pt"},
        files=files,
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    replace(old(tmp_path / "there"), CountingFiles())
    with Checkpoint.open(tmp_path / "there" / "new.safetensors") as found:
        assert list(found.tensors) == ["b.2", "b.10"] and found.metadata == {"format": "pt"}
    assert written(tmp_path / "there") == "new"
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "config.json",
        "new.safetensors",
        "notes.txt",
    ]


@pytest.mark.parametrize("how", ["error", "crash", "crash-after"])
def test_at_every_fault_the_old_one_or_the_new_one_is_there(how: str, tmp_path: Path) -> None:
    counting = CountingFiles()
    replace(old(tmp_path / "count"), counting)
    seen = set()
    for number in range(1, len(counting.calls) + 1):
        folder = old(tmp_path / f"at{number}")
        try:
            replace(folder, CountingFiles(number, how))
        except (StorageError, Crash):
            recover(folder)
        seen.add(written(folder))
    assert seen == {"old", "new"}


def test_refusals(tmp_path: Path) -> None:
    folder = old(tmp_path / "there")
    with pytest.raises(UsageError, match="not empty"):
        save_arrays(NEW, folder / "new.safetensors")
    with pytest.raises(UsageError, match="side file"):
        save_arrays(NEW, tmp_path / "other" / "x.safetensors", side_files={"../config.json": b""})
    with pytest.raises(CheckpointError, match="'a'"):
        save_arrays({"a": "no array"}, tmp_path / "other" / "x.safetensors")  # type: ignore[dict-item]
    assert written(folder) == "old" and not (tmp_path / "other").exists()
