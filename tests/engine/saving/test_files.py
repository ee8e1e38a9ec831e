from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.fault_shim import CountingFiles, snapshot
from weightloom.engine.disk import exchange, system_calls
from weightloom.engine.disk.exchange import exchange_paths
from weightloom.engine.disk.files import FILES, OpenFile
from weightloom.engine.disk.trees import carry_over, copy_file, remove_tree, sync_tree
from weightloom.engine.errors import StorageError
from weightloom.engine.os_errors import storage_error


def test_exchange_swaps_two_directories_in_one_step(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not exchange_paths(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot exchange")
    assert snapshot(tmp_path) == {"a": None, "a/b": b"", "b": None, "b/a": b""}


def test_exchange_with_something_missing_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(StorageError, match="no such file") as caught:
        FILES.exchange(tmp_path / "a", tmp_path / "b")
    assert caught.value.file == str(tmp_path / "b")


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_exchange_says_when_the_kernel_cannot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int) -> None:
    monkeypatch.setattr(exchange, "_swap_call", lambda: lambda first, second: code)
    assert not exchange_paths(tmp_path / "a", tmp_path / "b")


def test_exchange_says_when_the_library_has_no_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exchange, "_swap_call", lambda: None)
    assert not exchange_paths(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (errno.ENOSPC, "disk full"),
        (errno.EDQUOT, "disk full"),
        (errno.EACCES, "permission denied"),
        (errno.EPERM, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.ENOENT, "no such file"),
        (99999, "cannot write"),
    ],
)
def test_an_error_says_what_was_tried_on_which_file(code: int, text: str) -> None:
    error = storage_error("write", Path("/x/model"), OSError(code, os.strerror(code)))
    assert text in str(error)
    assert str(error).startswith("/x/model: cannot write")
    assert error.hint
    assert error.exit_code == 3


def test_the_device_that_is_always_full() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no such device")
    descriptor = os.open(full, os.O_WRONLY)
    try:
        with pytest.raises(StorageError, match="disk full") as caught:
            FILES.write_at(OpenFile(descriptor, full), b"x", 0)
    finally:
        os.close(descriptor)
    assert isinstance(caught.value.__cause__, OSError)


LIMITED = f"""
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))
from weightloom.engine.errors import StorageError
from weightloom.engine.disk.files import FILES
try:
    FILES.write_file(Path(sys.argv[1]), bytes(1500))
except StorageError as error:
    print(error.seen, Path(sys.argv[1]).stat().st_size)
"""


def test_a_write_that_stops_short_is_gone_on_with_until_the_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "f")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert answer.startswith("cannot write: the file is larger")
    assert answer.endswith(" 1000\n")


def test_a_write_that_writes_nothing_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(system_calls.os, "pwrite", lambda *_: 0)
    with pytest.raises(StorageError, match="cannot write"):
        FILES.write_file(tmp_path / "f", b"x")


def test_a_large_write_takes_several_calls(tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 33
    files = CountingFiles()
    files.write_file(tmp_path / "f", data)
    assert [action for action, _ in files.calls].count("write") == 3
    assert (tmp_path / "f").read_bytes() == data


def test_create_refuses_a_file_that_exists(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(StorageError, match="cannot create: file exists"):
        FILES.write_file(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_lock_has_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FILES.lock(path)
    assert lock is not None
    assert FILES.lock(path) is None
    FILES.unlock(lock)
    again = FILES.lock(path)
    assert again is not None
    FILES.unlink(path)
    other = FILES.lock(path)  # a new file at the same path
    assert other is not None
    FILES.unlock(again)
    FILES.unlock(other)


def test_a_lock_on_a_file_that_its_holder_just_removed_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        path.unlink()
        assert not system_calls.take_lock(descriptor, path)
        path.touch()
        assert not system_calls.take_lock(descriptor, path)
    finally:
        os.close(descriptor)


def test_link_says_when_it_cannot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    assert FILES.link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").samefile(tmp_path / "a")
    with pytest.raises(StorageError, match="file exists"):
        FILES.link(tmp_path / "a", tmp_path / "b")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "other device")

    monkeypatch.setattr(system_calls.os, "link", refuse)
    assert not FILES.link(tmp_path / "a", tmp_path / "c")


def test_a_copy_has_content_mode_and_times(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(os.urandom(1000))
    source.chmod(0o640)
    os.utime(source, (1, 2))
    copy_file(source, target, FILES)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode == source.stat().st_mode
    assert target.stat().st_mtime == 2


def test_remove_tree_takes_deep_and_read_only_directories_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").touch()
    root = tmp_path / "root"
    deep = root
    deep.mkdir()
    for _ in range(1200):
        deep = deep / "d"
        deep.mkdir()
    (root / "link").symlink_to(outside)
    (root / "locked").mkdir()
    (root / "locked" / "f").touch()
    (root / "locked").chmod(0o500)
    sync_tree(root, CountingFiles())
    remove_tree(root, FILES)
    assert snapshot(tmp_path) == {"outside": None, "outside/f": b""}


def test_carry_over_leaves_ours_and_what_is_there(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old / "sub" / "deep", new / "sub", old / "empty", new / "was-file", old / "was-folder"):
        path.mkdir(parents=True)
    (old / "w").write_bytes(b"ours")
    (old / "sub" / "w").write_bytes(b"ours too")
    (old / "sub" / "deep" / "x").write_bytes(b"x")
    (old / "config").write_bytes(b"old")
    (new / "config").write_bytes(b"new")
    (old / "was-file").write_bytes(b"old")
    (old / "was-folder" / "x").write_bytes(b"old")
    (new / "was-folder").write_bytes(b"new")
    (old / "nowhere").symlink_to("not/there")
    (old / "empty").chmod(0o750)
    carry_over(old, new, ["w", "./sub/w", "absent"], FILES)
    assert snapshot(new) == {
        "config": b"new",
        "empty": None,
        "nowhere": b"-> not/there",
        "sub": None,
        "sub/deep": None,
        "sub/deep/x": b"x",
        "was-file": None,
        "was-folder": b"new",
    }
    assert (new / "empty").stat().st_mode & 0o777 == 0o750
    assert (new / "sub" / "deep" / "x").samefile(old / "sub" / "deep" / "x")


def test_carry_over_copies_where_it_cannot_link(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    (old / "f").write_bytes(b"f")
    os.mkfifo(old / "pipe")
    monkeypatch.setattr("weightloom.engine.disk.files.link", lambda *_: False)
    with pytest.raises(StorageError, match="neither a file nor a link") as caught:
        carry_over(old, new, [], FILES)
    assert caught.value.file == str(old / "pipe")
    assert (new / "f").read_bytes() == b"f"
    assert not (new / "f").samefile(old / "f")
