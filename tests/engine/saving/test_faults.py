"""The writer is killed, or meets an error, at every call it makes: the target is the old or the new one."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engine.fault_shim import CRASHES, EXIT_CODE, EXITS, CountingFiles, Crash, beside, recover, snapshot
from weightloom.engine.disk.commit import replacing_directory
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.errors import StorageError
from weightloom.engine.saving.shards import ShardWriter, index_json

OLD_OURS = [
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
]
OLD = {
    "model-00001-of-00002.safetensors": b"old shard 1",
    "model-00002-of-00002.safetensors": b"old shard 2",
    "model.safetensors.index.json": b"old index",
    "config.json": b"old config",
    "README.md": b"foreign",
    "notes": None,
    "notes/a.txt": b"foreign too",
    "notes/link": b"-> a.txt",
}
NEW = {
    "model.safetensors": b"\x02\0\0\0\0\0\0\0{}" + b"abcdef",
    "model.safetensors.index.json": index_json({"a": "model.safetensors"}, 6),
    "config.json": b"new config",
    "README.md": b"foreign",
    "notes": None,
    "notes/a.txt": b"foreign too",
    "notes/link": b"-> a.txt",
}
MAKING = ("make the directory", "create", "write", "link")


def make_old(target: Path) -> None:
    target.mkdir(parents=True)
    for name, content in OLD.items():
        path = target / name
        if content is None:
            path.mkdir()
        elif content.startswith(b"-> "):
            path.symlink_to(content[3:].decode())
        else:
            path.write_bytes(content)


def save_new(target: Path, files: Files) -> None:
    with replacing_directory(target, overwrite=True, ours=lambda _: OLD_OURS, files=files) as folder:
        with ShardWriter(folder / "model.safetensors", b"{}", 6, files) as shard:
            shard.write_at(3, b"def")
            shard.write_at(0, b"abc")
        files.write_file(folder / "model.safetensors.index.json", NEW["model.safetensors.index.json"] or b"")
        files.write_file(folder / "config.json", b"new config")


def assert_old_or_new(target: Path) -> None:
    """What a reader finds is whole, and the next save ends as if nothing had happened."""
    recover(target)
    assert snapshot(target) in (OLD, NEW)
    save_new(target, CountingFiles())
    assert snapshot(target) == NEW
    assert beside(target) == []


def at_every_call(tmp_path: Path, make_files: Callable[[int], CountingFiles]) -> Iterator[tuple[Path, CountingFiles]]:
    """Give a fresh old target and files that fail at call k, for k = 1, 2, ... to the last call of a save."""
    k = 0
    while True:
        k += 1
        target = tmp_path / str(k) / "model"
        make_old(target)
        files = make_files(k)
        yield target, files
        if len(files.calls) < k:
            assert k > 50
            return


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("how", CRASHES)
def test_a_crash_at_any_call_leaves_the_old_or_the_new(tmp_path: Path, how: str, can_exchange: bool) -> None:
    seen = set()
    for target, files in at_every_call(tmp_path, lambda k: CountingFiles(k, how, can_exchange=can_exchange)):
        try:
            save_new(target, files)
        except Crash:
            recover(target)
            seen.add(snapshot(target) == NEW)
        assert_old_or_new(target)
    assert seen == {False, True}


@pytest.mark.parametrize("can_exchange", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("how", EXITS)
def test_a_process_that_ends_at_any_call_leaves_the_old_or_the_new(
    tmp_path: Path, how: str, can_exchange: bool
) -> None:
    k, code = 0, EXIT_CODE
    while code == EXIT_CODE:
        k += 1
        target = tmp_path / str(k) / "model"
        make_old(target)
        code = exit_code_of(save_new, target, CountingFiles(k, how, can_exchange=can_exchange))
        assert_old_or_new(target)
    assert code == 0
    assert k > 50


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_crash_after_a_crash_leaves_the_old_or_the_new(tmp_path: Path, can_exchange: bool) -> None:
    chance = random.Random(2)
    for n in range(150):
        target = tmp_path / str(n) / "model"
        make_old(target)
        for _ in range(2):
            files = CountingFiles(chance.randrange(1, 130), chance.choice(CRASHES), can_exchange=can_exchange)
            with suppress(Crash):
                save_new(target, files)
        assert_old_or_new(target)


@pytest.mark.parametrize("how", ["error", *CRASHES])
def test_a_first_save_is_whole_or_not_there(tmp_path: Path, how: str) -> None:
    k, failed = 0, True
    while failed:
        k += 1
        target = tmp_path / str(k) / "a" / "model"
        (tmp_path / str(k)).mkdir()
        files = CountingFiles(k, how)
        with suppress(Crash, StorageError):
            save_first(target, files)
        failed = len(files.calls) >= k
        if how == "error" and not target.exists():
            assert [path.name for path in target.parent.glob("*")] in ([], [".model.weightloom-lock"])
        assert not target.exists() or snapshot(target) == {"config.json": b"{}"}
        save_first(target, FILES)
        assert snapshot(tmp_path / str(k)) == {"a": None, "a/model": None, "a/model/config.json": b"{}"}
    assert k > 30


def save_first(target: Path, files: Files) -> None:
    with replacing_directory(target, overwrite=True, ours=lambda _: ["config.json"], files=files) as folder:
        files.write_file(folder / "config.json", b"{}")


def exit_code_of(save: Callable[[Path, Files], None], target: Path, files: Files) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking a process that has threads
        pid = os.fork()
    if pid == 0:
        try:
            save(target, files)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_at_any_call_leaves_the_old(tmp_path: Path, code: int, can_exchange: bool) -> None:
    def make_files(k: int) -> CountingFiles:
        return CountingFiles(k, "error", code=code, can_exchange=can_exchange)

    for target, files in at_every_call(tmp_path, make_files):
        error = error_of(save_new, target, files)
        action, path = [("", target), *files.calls][min(files.fail_at or 0, len(files.calls))]
        if error is None:
            # What is left to fail is to let go of the lock; its file may stay and does no harm.
            assert path.name == ".model.weightloom-lock"
            assert snapshot(target) == NEW
        elif "in place" in str(error):
            assert action not in MAKING
            assert snapshot(target) == NEW
        else:
            assert snapshot(target) == OLD
            assert beside(target) == ([] if action != "lock" else [".model.weightloom-lock"])
        if error is not None:
            assert error.file == str(path)
            assert "disk full" in str(error)
            assert error.hint
        assert_old_or_new(target)


def error_of(save: Callable[[Path, Files], None], target: Path, files: Files) -> StorageError | None:
    try:
        save(target, files)
    except StorageError as error:
        return error
    return None


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_disk_that_stays_broken_leaves_the_old_or_the_new(tmp_path: Path, can_exchange: bool) -> None:
    def make_files(k: int) -> CountingFiles:
        return CountingFiles(k, "errors", code=errno.EIO, can_exchange=can_exchange)

    for target, files in at_every_call(tmp_path, make_files):
        try:
            save_new(target, files)
        except StorageError as error:
            assert error.file
        files.how = "crash"  # nobody closed its descriptors, and the process ends now
        files.fail_at = len(files.calls) + 1
        with pytest.raises(Crash):
            files.status(target)
        assert_old_or_new(target)


def test_everything_is_on_the_device_before_the_swap(tmp_path: Path) -> None:
    target = tmp_path / "model"
    make_old(target)
    files = CountingFiles(syncs=True)
    save_new(target, files)
    swap = [action for action, _ in files.calls].index("exchange")
    before, after = files.calls[:swap], files.calls[swap:]
    temporary = next(path for action, path in before if action == "make the directory")
    last_change = {path: n for n, (action, path) in enumerate(before) if action in ("create", "write")}
    last_sync = {path: n for n, (action, path) in enumerate(before) if action == "sync"}
    made = [n for n, (action, path) in enumerate(before) if path.parent == temporary and action in MAKING]
    written = [path for path in last_change if path.is_relative_to(temporary)]
    assert len(written) == 3
    assert all(last_sync[path] > last_change[path] for path in written)
    assert last_sync[temporary] > max(made)
    assert ("sync", target.parent) == next(call for call in after if call[0] == "sync")
    assert after.index(("sync", target.parent)) < [action for action, _ in after].index("remove")


SAVER = """
import sys
from pathlib import Path
from weightloom.engine.disk.commit import replacing_directory
from weightloom.engine.disk.files import FILES
from weightloom.engine.saving.shards import ShardWriter

target, size = Path(sys.argv[1]), 1 << 20
print("ready", flush=True)
stamp = 0
while True:
    stamp = (stamp + 1) % 256
    with replacing_directory(target, overwrite=True, ours=lambda _: ["1", "2", "3"]) as folder:
        for name in "123":
            with ShardWriter(folder / name, b"{}", size, FILES) as shard:
                for start in range(0, size, 1 << 16):
                    shard.write(bytes([stamp]) * (1 << 16))
"""


def test_twenty_kills_at_random_moments(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    for name in "123":
        (target / name).write_bytes(b"\x02\0\0\0\0\0\0\0{}" + bytes(1 << 20))
    (target / "foreign").write_bytes(b"mine")
    chance = random.Random(20)
    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", SAVER, str(target)], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(chance.uniform(0, 0.08))
            assert child.poll() is None
            child.send_signal(signal.SIGKILL)
        recover(target)
        assert sorted(path.name for path in target.iterdir()) == ["1", "2", "3", "foreign"]
        contents = {(target / name).read_bytes() for name in "123"}
        assert len(contents) == 1
        (content,) = contents
        assert content[10:] == content[10:11] * (1 << 20)
        assert (target / "foreign").read_bytes() == b"mine"
    with replacing_directory(target, overwrite=True, ours=lambda _: ["1", "2", "3"]) as folder:
        FILES.write_file(folder / "1", b"end")
    assert snapshot(target) == {"1": b"end", "foreign": b"mine"}
    assert beside(target) == []
