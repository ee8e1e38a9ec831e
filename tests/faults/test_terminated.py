"""SIGTERM and read errors while bytes are on their way: sources and old target stay whole, and nothing is left over."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import contents, halves, tm, write, write_sharded
from tests.engine.fault_shim import beside
from tests.faults.checkpoints import Saver, make_old
from tests.faults.test_load_faults import on_a_broken_disk
from weightloom.engine import Checkpoint, StorageError, build_plan
from weightloom.engine.saving.save import convert, copy_checkpoint

ROOT = Path(__file__).parents[2]
LOADER = """
import sys
from weightloom.engine import Checkpoint, build_plan

plan = build_plan(Checkpoint.open(sys.argv[1]), [])
print("ready", flush=True)
while True:
    plan.load()
"""
SAVER = """
import sys
from pathlib import Path
from weightloom.engine import Checkpoint, build_plan

plan = build_plan(Checkpoint.open(sys.argv[1]), [])
arrays = plan.load()
print("ready", flush=True)
while True:
    plan.save(arrays, Path(sys.argv[2]), overwrite=True)
"""


def large(folder: Path, seed: int, count: int = 4) -> Path:
    chance = np.random.default_rng(seed)
    arrays = {f"layers.{n}.w": chance.standard_normal((1 << 20,), dtype=np.float32) for n in range(count)}
    return write(folder / "model.safetensors", arrays).parent


def terminate(script: str, *arguments: Path, delay: float) -> int:
    """Run a script until it is ready, and end it a little later; give its exit code."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(delay)
        child.send_signal(signal.SIGTERM)
        return child.wait()


def test_a_load_that_is_terminated(tmp_path: Path) -> None:
    source = large(tmp_path / "source", 1)
    before, chance = contents(source), random.Random(3)
    for _ in range(4):
        assert terminate(LOADER, source, delay=chance.uniform(0, 0.1)) == -signal.SIGTERM
    assert contents(source) == before and beside(source) == []


def test_a_save_that_is_terminated(tmp_path: Path) -> None:
    """The target is the old one or the new one, and the next save leaves nothing but its own."""
    source, other, target = large(tmp_path / "a", 1), large(tmp_path / "b", 2), tmp_path / "t" / "model"
    shutil.copytree(other, target)
    before, chance = contents(source), random.Random(4)
    for _ in range(8):
        assert terminate(SAVER, source, target, delay=chance.uniform(0, 0.15)) == -signal.SIGTERM
        assert contents(target) in (before, contents(other))
        assert contents(source) == before
    copy_checkpoint(Checkpoint.open(other), target, overwrite=True)
    assert contents(target) == contents(other) and beside(target) == []


def begun(target: Path) -> bool:
    return any(name.startswith(f".{target.name}.weightloom-") and name[-4:] != "lock" for name in beside(target))


def test_a_conversion_on_the_command_line_that_is_terminated_cleans_up_at_once(tmp_path: Path) -> None:
    source, target = large(tmp_path / "source", 1, count=24), make_old(tmp_path / "t" / "model")
    old = contents(target)
    command = ["convert", str(source), str(target), "--overwrite", "--max-shard-size", "5MB"]
    with subprocess.Popen(
        [sys.executable, "-m", "weightloom.runtime", *command], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        while not begun(target) and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGTERM)
        _, complaint = child.communicate()
    assert (child.returncode, complaint.strip()) == (143, "terminated")
    assert contents(target) == old and beside(target) == []


def converted(target: Path, source: Path) -> None:
    convert(on_a_broken_disk(source), target, overwrite=True)


def copied(target: Path, source: Path) -> None:
    checkpoint = on_a_broken_disk(source).checkpoint
    assert checkpoint is not None
    copy_checkpoint(checkpoint, target, overwrite=True)


@pytest.mark.parametrize("write_it", [converted, copied])
def test_a_read_error_while_it_is_written_elsewhere(tmp_path: Path, write_it: Callable[[Path, Path], None]) -> None:
    source, target = write_sharded(tmp_path / "source", halves(tm(4))), make_old(tmp_path / "t" / "model")
    before, old = contents(source), contents(target)
    with pytest.raises(StorageError) as caught:
        write_it(target, source)
    assert caught.value.file and str(source) in caught.value.file and "device" in caught.value.seen
    assert (contents(source), contents(target), beside(target)) == (before, old, [])


def test_an_interrupt_during_a_save(tmp_path: Path) -> None:
    saver, target = Saver(tmp_path / "source"), make_old(tmp_path / "t" / "model")
    old = contents(target)

    def progress(done: int, total: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        saver.plan.save(saver.params, target, overwrite=True, progress=progress)
    assert contents(target) == old and beside(target) == []


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: the kernel itself refuses the write."""
    target = make_old(tmp_path / "t" / "model")
    old, before = contents(target), resource.getrlimit(resource.RLIMIT_FSIZE)
    plan = build_plan(Checkpoint.open(large(tmp_path / "large", 5)), [])
    loaded = plan.load()
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(StorageError) as caught:
            plan.save(loaded, target, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.exit_code == 3 and caught.value.file and caught.value.hint
    assert contents(target) == old and beside(target) == []
