"""A file is seen at first and after each save, however it was saved."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from weightloom.engine.errors import StorageError, UsageError
from weightloom.rules.yaml_text import MAX_BYTES
from weightloom.runtime.authoring.saves import saves


def after_each(*steps: Callable[[], object]) -> Callable[[], None]:
    """Do one step a look, and refuse to go on when there are no more."""
    left = iter(steps)

    def wait() -> None:
        next(left)()

    return wait


def nothing() -> None:
    pass


def test_each_save_is_seen_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"one")
    wait = after_each(
        nothing, lambda: file.write_bytes(b"second"), nothing, nothing, lambda: file.write_bytes(b"3rd"), nothing
    )
    assert list(islice(saves(file, wait), 3)) == [b"one", b"second", b"3rd"]


def test_a_file_that_is_put_in_its_place_is_seen(tmp_path: Path) -> None:
    file, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    file.write_bytes(b"one")
    status = file.stat()

    def move() -> None:
        other.write_bytes(b"two")
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        other.replace(file)

    assert list(islice(saves(file, after_each(move, nothing)), 2)) == [b"one", b"two"]


def test_a_file_that_is_gone_for_a_while_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"one")
    wait = after_each(file.unlink, nothing, lambda: file.write_bytes(b"again"), nothing)
    assert list(islice(saves(file, wait), 2)) == [b"one", b"again"]


def test_a_file_that_is_being_written_is_left_until_it_rests(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"one")
    steps = [lambda: file.write_bytes(b"ha"), lambda: file.write_bytes(b"half"), nothing, nothing]
    assert list(islice(saves(file, after_each(*steps)), 2)) == [b"one", b"half"]


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.yaml"):
        next(saves(tmp_path / "none.yaml"))


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe.yaml", tmp_path / "a.yaml"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(UsageError, match="is not a file"):
            next(saves(path))
    file.write_bytes(b"one")
    there = pipe.rename
    wait = after_each(lambda: there(file), nothing, file.unlink, lambda: file.write_bytes(b"again"), nothing)
    assert list(islice(saves(file, wait), 2)) == [b"one", b"again"]


def test_of_a_long_file_no_more_is_read_than_shows_that(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    with file.open("wb") as made:
        made.truncate(1 << 40)
    assert len(next(saves(file))) == MAX_BYTES + 1
