"""What goes wrong while a plan is loaded: a named error, no parameters, and never the end of the process."""

from __future__ import annotations

import errno
import gc
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest

from tests.cases.fixtures import TM_RULES, assert_same, const, contents, halves, tm, tm_fused, write, write_sharded
from tests.engine.fault_shim import beside
from weightloom.engine import Checkpoint, CheckpointError, Plan, StorageError, build_plan
from weightloom.engine.checkpoints.file_source import FileSource

SECOND = "model-00002-of-00002.safetensors"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "source", halves(tm(4)))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 8)


def replace_with_another(path: Path) -> None:
    other = write(path.with_name("other"), {"x": const(1.0, 4)})
    os.replace(other, path)


def delete(path: Path) -> None:
    path.unlink()


def change_in_place(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\xff\xff\xff\xff")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))


CHANGES = (truncate, replace_with_another, delete, change_in_place)


def once(change: Callable[[], None]) -> Callable[[int, int], None]:
    """Give a progress callback that makes the change when the first bytes are there."""
    left = [change]

    def progress(done: int, total: int) -> None:
        if left:
            left.pop()()

    return progress


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_a_shard_that_changes_during_a_load(source: Path, change: Callable[[Path], None], threads: int) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    with pytest.raises(CheckpointError) as caught:
        plan.load(threads=threads, progress=once(lambda: change(source / SECOND)))
    assert caught.value.file == str(source / SECOND)


@pytest.mark.parametrize("change", CHANGES)
def test_a_shard_that_changed_before_a_save(source: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    loaded = plan.load()
    change(source / SECOND)
    with pytest.raises(CheckpointError) as caught:
        plan.save(loaded, tmp_path / "out")
    assert caught.value.file == str(source / SECOND)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", CHANGES)
def test_a_shard_that_changes_during_a_save(source: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    loaded = plan.load()
    with pytest.raises(CheckpointError) as caught:
        plan.save(loaded, tmp_path / "out", progress=once(lambda: change(source / SECOND)))
    assert caught.value.file == str(source / SECOND)
    assert not (tmp_path / "out").exists() and beside(tmp_path / "out") == ["source"]


class Broken(FileSource):
    """A disk that cannot read from some offset on."""

    def __init__(self, path: Path, code: int) -> None:
        super().__init__(path)
        self.code = code

    def _read_some(self, offset: int, view: memoryview) -> int:
        from weightloom.engine.os_errors import storage_error

        raise storage_error("read", Path(self.name), OSError(self.code, os.strerror(self.code)))


def on_a_broken_disk(source: Path) -> Plan:
    whole = Checkpoint.open(source)
    shards = (whole.shards[0], replace(whole.shards[1], source=Broken(source / SECOND, errno.EIO)))
    places = {
        name: (shard.source, shard.header.data_start + entry.start)
        for shard in shards
        for entry in shard.header.entries
        for name in [entry.name]
    }
    return build_plan(replace(whole, shards=shards, _places=places), TM_RULES)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_read_error_is_a_storage_error(source: Path, tmp_path: Path, threads: int) -> None:
    """MLX reads from a thread of its own, out of which no exception can come."""
    with pytest.raises(StorageError) as caught:
        on_a_broken_disk(source).load(threads=threads)
    assert caught.value.file == str(source / SECOND) and "device" in caught.value.seen
    assert_same(build_plan(Checkpoint.open(source), TM_RULES).load(), tm_fused(4))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_read_error_in_a_large_tensor(tmp_path: Path, threads: int) -> None:
    """One tensor that several threads read together; the file is cut short behind their backs."""
    path = write(tmp_path / "model.safetensors", {"w": const(1.0, 8, 1 << 20)})
    plan = build_plan(Checkpoint.open(path), [])
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(CheckpointError) as caught:
        plan.load(threads=threads)
    assert caught.value.file == str(path)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Python hears a signal in whatever runs next; in a finalizer that a collection runs, it is lost."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_an_interrupt_during_a_load(source: Path) -> None:
    """Ctrl-C is heard when MLX comes back; nothing is returned, and the next load works."""
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    with pytest.raises(KeyboardInterrupt):
        plan.load(progress=once(lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert_same(plan.load(), tm_fused(4))


@pytest.mark.usefixtures("no_collection")
def test_an_interrupt_is_heard_between_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large load does not go on to its end."""
    monkeypatch.setattr("weightloom.engine.reading.fetch._BATCH", 1000)
    path = write(tmp_path / "model.safetensors", {f"w{n}": const(n, 200) for n in range(10)})
    plan, seen = build_plan(Checkpoint.open(path), []), []

    def progress(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        plan.load(progress=progress)
    assert len(seen) < 10
    assert [float(array[0]) for array in plan.load().values()] == list(range(10))


def test_an_error_of_the_progress_callback_comes_out_as_it_is(source: Path, tmp_path: Path) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)

    def progress(done: int, total: int) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        plan.load(progress=progress)
    with pytest.raises(LookupError, match="mine"):
        plan.save(plan.load(), tmp_path / "out", progress=progress)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_collection")
def test_a_failed_load_leaves_nothing_open_or_held(source: Path) -> None:
    plan = on_a_broken_disk(source)
    mx.clear_cache()
    before, descriptors = mx.get_active_memory(), len(os.listdir("/dev/fd"))
    for threads in (1, 3):
        with pytest.raises(StorageError):
            plan.load(threads=threads)
    assert mx.get_active_memory() == before
    assert len(os.listdir("/dev/fd")) == descriptors


def test_a_closed_checkpoint(source: Path, tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(source)
    plan = build_plan(checkpoint, TM_RULES)
    loaded = plan.load()
    checkpoint.close()
    with pytest.raises(CheckpointError, match="closed"):
        plan.load()
    with pytest.raises(CheckpointError, match="closed"):
        plan.save(loaded, tmp_path / "out")
    assert list(contents(tmp_path)) and not (tmp_path / "out").exists()
