"""A save of a real plan is killed at every file-system call that it makes: the target is the old one or the new one."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases.fixtures import const, contents, write, write_sharded
from tests.engine.fault_shim import CRASHES, EXIT_CODE, EXITS, CountingFiles, Crash, beside
from tests.faults.checkpoints import Saver, make_old, whole
from weightloom.engine import Checkpoint, StorageError
from weightloom.engine.disk.files import Files

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def saver(tmp_path_factory: pytest.TempPathFactory) -> Saver:
    return Saver(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return contents(make_old(tmp_path_factory.mktemp("old") / "model"))


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory, saver: Saver) -> dict[str, bytes]:
    target = tmp_path_factory.mktemp("converted") / "model"
    saver.convert(target)
    return contents(target)


@pytest.mark.parametrize("can_exchange", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("how", CRASHES)
def test_a_save_that_crashes_at_any_call(
    tmp_path: Path, saver: Saver, old: dict[str, bytes], how: str, can_exchange: bool
) -> None:
    seen, k, crashed = [], 0, True
    while crashed:
        k += 1
        target = make_old(tmp_path / str(k) / "model")
        files = CountingFiles(k, how, can_exchange=can_exchange)
        try:
            saver.save(target, files)
            crashed = False
        except Crash:
            seen.append(whole(target, old, saver.new))
            saver.save(target)
        assert whole(target, old, saver.new) == "new"
        assert beside(target) == []
    assert k > 60
    assert set(seen) == {"old", "new"} and seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("can_exchange", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("how", EXITS)
def test_a_process_that_ends_at_any_call(
    tmp_path: Path, saver: Saver, old: dict[str, bytes], converted: dict[str, bytes], how: str, can_exchange: bool
) -> None:
    k, code = 0, EXIT_CODE
    while code == EXIT_CODE:
        k += 1
        target = make_old(tmp_path / str(k) / "model")
        code = exit_code_of(saver.convert, target, CountingFiles(k, how, can_exchange=can_exchange))
        found = whole(target, old, converted)
    assert (code, found) == (0, "new")
    assert k > 60


def exit_code_of(save: Callable[[Path, Files], None], target: Path, files: Files) -> int:
    """Run a save in a forked process; it goes from disk to disk, since MLX does not survive a fork."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            save(target, files)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_full_disk_at_any_call(tmp_path: Path, saver: Saver, old: dict[str, bytes], can_exchange: bool) -> None:
    k, seen = 0, []
    while True:
        k += 1
        target = make_old(tmp_path / str(k) / "model")
        files = CountingFiles(k, "error", code=errno.ENOSPC, can_exchange=can_exchange)
        try:
            saver.save(target, files)
            if len(files.calls) < k:
                break
        except StorageError as error:
            action, path = files.calls[k - 1]
            assert error.file == str(path) and "disk full" in str(error) and error.hint
            seen.append(whole(target, old, saver.new))
            assert seen[-1] == "old" or "in place" in str(error)
            if seen[-1] == "old":
                assert beside(target) == ([".model.weightloom-lock"] if action == "lock" else [])
    assert k > 60 and seen.count("old") > 40


def test_a_full_disk_on_a_first_save_leaves_nothing(tmp_path: Path, saver: Saver) -> None:
    k = 0
    while True:
        k += 1
        target = tmp_path / str(k) / "model"
        files = CountingFiles(k, "error", code=errno.ENOSPC)
        try:
            saver.save(target, files)
            if len(files.calls) < k:
                break
        except StorageError as error:
            assert error.file
            if not target.exists() and files.calls[k - 1][0] != "lock":
                assert not target.parent.exists()
    assert contents(target) == saver.new


SAVER = """
import sys
from pathlib import Path
import mlx.core as mx
from weightloom.engine import Checkpoint, build_plan

target = Path(sys.argv[1])
plans = [build_plan(Checkpoint.open(name), []) for name in sys.argv[2:]]
params = [plan.load() for plan in plans]
print("ready", flush=True)
while True:
    for plan, arrays in zip(plans, params):
        plan.save(arrays, target, overwrite=True)
"""


def test_twenty_kills_at_random(tmp_path: Path) -> None:
    """A child saves two checkpoints of 4 MB in turn and is killed: the target is one of them, byte for byte."""
    arrays = {f"layers.{n}.w": const(n, 1 << 18) for n in range(4)}
    first = write(tmp_path / "a" / "model.safetensors", arrays).parent
    names = list(arrays)
    second = write_sharded(tmp_path / "b", [{n: arrays[n] + 1 for n in names[k::2]} for k in range(2)])
    wanted = [contents(first), contents(second)]
    target = tmp_path / "model"
    shutil.copytree(first, target)
    chance = random.Random(8)
    for _ in range(20):
        kill_a_saver(target, first, second, chance.uniform(0, 0.15))
        Checkpoint.open(target).close()
        assert contents(target) in wanted


def kill_a_saver(target: Path, first: Path, second: Path, delay: float) -> None:
    command = [sys.executable, "-c", SAVER, str(target), str(first), str(second)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(delay)
        assert child.poll() is None
        child.send_signal(signal.SIGKILL)
