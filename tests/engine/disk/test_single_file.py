"""One file in one step: whole or not at all, and never over what is there unless that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from weightloom.engine.disk.files import Files
from weightloom.engine.disk.single_file import check_free, write_single
from weightloom.engine.errors import StorageError, UsageError

T = TypeVar("T")


class Breaking(Files):
    """Files of which one action fails."""

    def __init__(self, action: str) -> None:
        self.action = action

    def perform(self, action: str, path: Path, call: Callable[[], T]) -> T:
        if action == self.action:
            raise OSError(28, "No space left on device")
        return call()


def test_a_file_is_written_and_nothing_else(tmp_path: Path) -> None:
    write_single(tmp_path / "a.txt", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.txt": b"new"}


def test_a_file_that_is_there_is_replaced_on_wish_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"old")
    file.chmod(0o640)
    with pytest.raises(UsageError, match="there already"):
        write_single(file, b"new")
    assert file.read_bytes() == b"old"
    write_single(file, b"new", overwrite=True)
    assert file.read_bytes() == b"new" and file.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_single(tmp_path / "link", b"new", overwrite=True)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("action", ["create", "write", "sync", "rename something to"])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, action: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"old")
    with pytest.raises(StorageError, match="disk full"):
        write_single(file, b"new", overwrite=True, files=Breaking(action))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.txt": b"old"}


def test_a_directory_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a file"):
        check_free(tmp_path, overwrite=True)
