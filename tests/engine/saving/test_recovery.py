from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.engine.raw_files import write_f32
from tests.engine.reads import value_of
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import UsageError


def test_a_directory_set_aside_is_put_back(tmp_path: Path) -> None:
    model = tmp_path / "model"
    aside = tmp_path / ".model.weightloom-old"
    for path in model, model / "model.safetensors":
        aside.mkdir()
        write_f32(aside / "model.safetensors", "a", 3.0)
        assert value_of(Checkpoint.open(path), "a") == 3.0
        assert not aside.exists() and (model / "model.safetensors").exists()
        (model / "model.safetensors").unlink()
        model.rmdir()


def test_what_a_link_names_is_put_back(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    (tmp_path / ".model.weightloom-old").mkdir()
    write_f32(tmp_path / ".model.weightloom-old" / "model.safetensors", "a", 3.0)
    assert value_of(Checkpoint.open(tmp_path / "link"), "a") == 3.0
    assert sorted(os.listdir(tmp_path)) == ["link", "model"]


def test_a_directory_that_is_there_stays(tmp_path: Path) -> None:
    for name, value in ("model", 1.0), (".model.weightloom-old", 3.0):
        (tmp_path / name).mkdir()
        write_f32(tmp_path / name / "model.safetensors", "a", value)
    assert value_of(Checkpoint.open(tmp_path / "model"), "a") == 1.0
    assert (tmp_path / ".model.weightloom-old").exists()


def test_a_save_under_way_is_not_disturbed(tmp_path: Path) -> None:
    (tmp_path / ".model.weightloom-old").mkdir()
    with (tmp_path / ".model.weightloom-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="under way"):
            Checkpoint.open(tmp_path / "model")
    assert (tmp_path / ".model.weightloom-old").exists()
