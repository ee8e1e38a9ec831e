from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.engine.fault_shim import CountingFiles, beside, snapshot
from weightloom.engine.disk.commit import replacing_directory
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.errors import CheckpointError, StorageError, UsageError, WeightloomError


def save(target: str | Path, content: bytes = b"new", *, overwrite: bool = True, files: Files = FILES) -> None:
    with replacing_directory(target, overwrite=overwrite, ours=lambda _: ["w", "gone"], files=files) as folder:
        (folder / "w").write_bytes(content)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    target = tmp_path / "model"
    target.mkdir()
    (target / "w").write_bytes(b"old")
    (target / "mine").write_bytes(b"mine")
    return target


@pytest.mark.parametrize("there", ["missing", "empty", "no parent"])
def test_a_target_without_content_needs_no_overwrite(tmp_path: Path, there: str) -> None:
    target = tmp_path / "model" if there != "no parent" else tmp_path / "a" / "b" / "model"
    if there == "empty":
        target.mkdir()
    save(target, overwrite=False)
    assert snapshot(target) == {"w": b"new"}
    assert beside(target) == []


@pytest.mark.parametrize("can_exchange", [True, False])
def test_files_that_are_not_ours_stay(old: Path, can_exchange: bool) -> None:
    inode = (old / "mine").stat().st_ino
    save(old, files=CountingFiles(can_exchange=can_exchange))
    assert snapshot(old) == {"w": b"new", "mine": b"mine"}
    assert beside(old) == []
    assert (old / "mine").stat().st_ino == inode


def test_a_filled_target_is_refused_before_anything_is_made(old: Path) -> None:
    before = snapshot(old.parent)
    with pytest.raises(UsageError, match="--overwrite") as caught:
        save(old, overwrite=False)
    assert caught.value.file == str(old)
    assert snapshot(old.parent) == before


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_file_as_target_is_refused(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "model").write_bytes(b"file")
    with pytest.raises(UsageError, match="not a directory"):
        save(tmp_path / "model", overwrite=overwrite)
    assert snapshot(tmp_path) == {"model": b"file"}


def test_a_file_as_parent_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(StorageError, match="a part of the path is a file"):
        save(tmp_path / "a" / "model")


@pytest.mark.parametrize("target", ["a\0b", "x" * 300, "/proc", "."])
def test_a_target_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeightloomError):
        save(target)
    assert snapshot(tmp_path) == {}


def test_the_parent_of_the_working_directory_is_refused(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (old / "sub").mkdir()
    monkeypatch.chdir(old / "sub")
    with pytest.raises(UsageError, match="working directory"):
        save(old)


def test_a_working_directory_that_is_gone_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    save(tmp_path / "model")
    assert snapshot(tmp_path / "model") == {"w": b"new"}


def test_a_link_as_target_stays_and_what_it_names_is_replaced(old: Path) -> None:
    link = old.parent / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to("../model")
    save(link)
    assert link.is_symlink()
    assert snapshot(old) == {"w": b"new", "mine": b"mine"}
    assert beside(link) == []
    link.unlink()
    link.symlink_to("../other")
    save(link)
    assert snapshot(old.parent / "other") == {"w": b"new"}


@pytest.mark.parametrize("mode", [0o750, 0o700, 0o2770])
def test_the_permission_bits_stay(old: Path, mode: int) -> None:
    old.chmod(mode)
    with replacing_directory(old, overwrite=True, ours=lambda _: ["w"]) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == mode & 0o077
    assert stat.S_IMODE(old.stat().st_mode) == mode


def test_ours_is_asked_about_the_old_target_only(old: Path) -> None:
    asked: list[Path] = []

    def ours(path: Path) -> list[str]:
        asked.append(path)
        return ["w"]

    with replacing_directory(old, overwrite=True, ours=ours):
        assert asked == [old]
    assert snapshot(old) == {"mine": b"mine"}
    with replacing_directory(old.parent / "fresh", overwrite=True, ours=ours):
        assert asked == [old]


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", [Stop, CheckpointError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_whatever_ends_the_body_leaves_the_target_as_it_was(old: Path, kind: type[BaseException]) -> None:
    before = snapshot(old.parent)
    with pytest.raises(kind), replacing_directory(old, overwrite=True, ours=lambda _: ["w"]) as folder:
        (folder / "w").write_bytes(b"new")
        raise kind("enough")
    assert snapshot(old.parent) == before


def test_an_error_removes_the_parents_that_were_made(tmp_path: Path) -> None:
    with pytest.raises(Stop), replacing_directory(tmp_path / "a" / "b", overwrite=True, ours=list):
        raise Stop
    assert snapshot(tmp_path) == {}


def test_a_parent_that_a_neighbour_makes_meanwhile_is_used_and_stays(tmp_path: Path) -> None:
    class Raced(Files):
        def make_directory(self, path: Path) -> None:
            if path.name == "a":
                path.mkdir()
            super().make_directory(path)

    with (
        pytest.raises(Stop),
        replacing_directory(tmp_path / "a" / "b" / "c", overwrite=True, ours=list, files=Raced()) as folder,
    ):
        assert folder.is_dir()
        raise Stop
    assert snapshot(tmp_path) == {"a": None}


def test_an_error_of_ours_makes_nothing(old: Path) -> None:
    def ours(_: Path) -> list[str]:
        raise CheckpointError("the index is not JSON")

    before = snapshot(old.parent)
    with pytest.raises(CheckpointError), replacing_directory(old, overwrite=True, ours=ours):
        pytest.fail("the body must not run")
    assert snapshot(old.parent) == before


def test_a_second_save_at_the_same_time_is_refused(old: Path) -> None:
    with replacing_directory(old, overwrite=True, ours=lambda _: ["w"]) as folder:
        with pytest.raises(UsageError, match="another save"):
            save(old, b"second")
        assert folder.exists()
        save(old.parent / "model2")  # another target is another matter
        (folder / "w").write_bytes(b"first")
    assert snapshot(old) == {"w": b"first", "mine": b"mine"}
    assert beside(old) == ["model2"]


def test_leftovers_of_dead_runs_are_cleared_and_nothing_else(old: Path) -> None:
    folder = old.parent
    for name in (".model.weightloom-12-0123abcd", ".model.weightloom-99-ffffffff"):
        (folder / name / "sub").mkdir(parents=True)
        (folder / name / "sub" / "w").touch()
    (folder / ".model.weightloom-lock").touch()
    strangers = [
        ".model.weightloom-12",
        ".model2.weightloom-1-0123abcd",
        ".xmodel.weightloom-1-0123abcd",
        "x",
    ]
    for name in strangers:
        (folder / name).mkdir()
    save(old)
    assert beside(old) == sorted(strangers)


@pytest.mark.parametrize("there", ["missing", "empty"])
def test_a_target_set_aside_by_a_dead_run_is_put_back_first(old: Path, there: str) -> None:
    old.rename(old.parent / ".model.weightloom-old")
    if there == "empty":
        old.mkdir()
    with pytest.raises(UsageError, match="cut off"):
        save(old, overwrite=False)
    with pytest.raises(Stop), replacing_directory(old, overwrite=True, ours=lambda _: ["w"]):
        raise Stop
    assert snapshot(old) == {"w": b"old", "mine": b"mine"}
    save(old)
    assert snapshot(old) == {"w": b"new", "mine": b"mine"}
    assert beside(old) == []


def test_what_was_set_aside_goes_once_the_target_is_there(old: Path) -> None:
    (old.parent / ".model.weightloom-old").mkdir()
    (old.parent / ".model.weightloom-old" / "w").touch()
    save(old)
    assert snapshot(old) == {"w": b"new", "mine": b"mine"}
    assert beside(old) == []


def test_a_failure_to_clean_up_is_a_note_on_the_reason(old: Path) -> None:
    class Stuck(Files):
        def remove_directory(self, path: Path) -> None:
            raise StorageError("stuck", file=path)

    with (
        pytest.raises(Stop) as caught,
        replacing_directory(old, overwrite=True, ours=lambda _: ["w"], files=Stuck()),
    ):
        raise Stop
    assert "stuck" in caught.value.__notes__[0]
    assert snapshot(old) == {"w": b"old", "mine": b"mine"}


def test_the_source_may_be_read_while_it_is_the_target(old: Path) -> None:
    descriptor = os.open(old / "w", os.O_RDONLY)
    try:
        with replacing_directory(old, overwrite=True, ours=lambda _: ["w"]) as folder:
            (folder / "w").write_bytes(os.pread(descriptor, 100, 0).upper())
    finally:
        os.close(descriptor)
    assert snapshot(old) == {"w": b"OLD", "mine": b"mine"}


def test_what_the_body_writes_by_itself_is_synced_before_the_swap(old: Path) -> None:
    files = CountingFiles(syncs=True)
    with replacing_directory(old, overwrite=True, ours=lambda _: ["w"], files=files) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "x").write_bytes(b"x")
    swap = [action for action, _ in files.calls].index("exchange")
    synced = {path for action, path in files.calls[:swap] if action == "sync"}
    assert {folder, folder / "sub", folder / "sub" / "x"} <= synced
