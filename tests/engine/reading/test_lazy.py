"""Parameters that are read when they are first asked for: the bytes of an eager load, and nothing before."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.fixtures import TM_RULES, const, halves, plan_of, specs, tm, tm_fused, write, write_sharded
from tests.laws.sources import NotedSource, in_memory, with_sources
from tests.laws.worlds import bytes_of, worlds
from tests.strategies import share
from weightloom.engine import Checkpoint, CheckpointError, Plan, PlanError, Sharding, Tie, UsageError, build_plan
from weightloom.engine.planning.cast import with_dtype

SECOND = "model-00002-of-00002.safetensors"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "source", halves(tm(4)))


@share(0.3)
@given(st.data())
def test_lazy_is_eager_bit_for_bit(data: st.DataObject) -> None:
    world = data.draw(worlds())
    with TemporaryDirectory() as place, in_memory(world.tensors, Path(place)) as checkpoint:
        plan = world.plan(checkpoint)
        eager, lazy = plan.load(threads=1), plan.lazy(threads=1)
        names = data.draw(st.permutations(sorted(eager)))
        assert set(lazy) == set(eager) == lazy.unread and len(lazy) == len(eager)
        for name in names:
            assert bytes_of(lazy[name]) == bytes_of(eager[name]) and lazy[name] is lazy[name]
            assert (lazy[name].shape, lazy.specs[name].shape) == (eager[name].shape, eager[name].shape)
        assert not lazy.unread


def test_nothing_is_read_until_it_is_asked_for(source: Path) -> None:
    checkpoint, sources = with_sources(Checkpoint.open(source), NotedSource)
    lazy = build_plan(checkpoint, TM_RULES).lazy()
    assert not any(each.reads for each in sources)
    name = next(name for name in tm_fused(4) if "gate" in name)
    _ = lazy[name]
    read = sum(length for each in sources for _, length in each.reads)
    assert read == tm_fused(4)[name].nbytes
    assert lazy[name] is lazy[name] and read == sum(length for each in sources for _, length in each.reads)


def test_computed_parameters_and_parts_of_them(source: Path) -> None:
    plan = with_dtype(build_plan(Checkpoint.open(source), TM_RULES), "BF16")
    kinds = {"gate_up": "packed", "down": "row"}
    for sharding in (None, Sharding(1, 2, kinds)):  # type: ignore[arg-type]
        eager, lazy = plan.load(sharding), plan.lazy(sharding)
        for name in eager:
            assert lazy.specs[name].shape == eager[name].shape and lazy.specs[name].dtype == "BF16"
            assert bytes_of(lazy[name]) == bytes_of(eager[name])


def replaced(plan: Plan, source: Path) -> None:
    other = build_plan(Checkpoint.open(source), [])
    doubled = {name: array + 1 for name, array in other.load().items()}
    other.save(doubled, source, overwrite=True)


def removed(plan: Plan, source: Path) -> None:
    for path in list(source.iterdir()):
        path.unlink()


def saved_over(plan: Plan, source: Path) -> None:
    plan.save(plan.load(), source, overwrite=True)


@pytest.mark.parametrize("happens", [replaced, removed, saved_over])
def test_files_that_are_replaced_are_read_as_they_were(source: Path, happens: object) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    eager, lazy = plan.load(), plan.lazy()
    assert callable(happens)
    happens(plan, source)
    for name, array in eager.items():
        assert bytes_of(lazy[name]) == bytes_of(array)


def overwrite(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\xff\xff\xff\xff")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [overwrite, truncate])
def test_a_file_that_is_changed_in_place_is_refused(tmp_path: Path, change: object) -> None:
    path = write(tmp_path / "model.safetensors", {"a": const(1, 8), "b": const(2, 8)})
    lazy = plan_of(tmp_path).lazy()
    first = lazy["a"]
    assert callable(change)
    change(path)
    for _ in range(2):
        with pytest.raises(CheckpointError) as caught:
            _ = lazy["b"]
        assert caught.value.file == str(path)
    assert lazy["a"] is first and lazy.unread == {"b"}


def test_a_closed_checkpoint_is_refused(source: Path) -> None:
    checkpoint = Checkpoint.open(source)
    lazy = build_plan(checkpoint, TM_RULES).lazy()
    checkpoint.close()
    with pytest.raises(CheckpointError, match="closed"):
        _ = lazy[next(iter(lazy))]


def test_two_ends_of_a_tie_are_compared_when_one_is_used(tmp_path: Path) -> None:
    tie = Tie("head", "embed")
    arrays = {"embed": const(1, 4, 2), "head": const(2, 4, 2), "x": const(3, 2)}
    write(tmp_path / "model.safetensors", arrays)
    lazy = plan_of(tmp_path, [tie], specs(arrays)).lazy()
    assert lazy["x"].tolist() == [3, 3]
    for name in ("embed", "head"):
        with pytest.raises(PlanError, match="differ"):
            _ = lazy[name]
    write(tmp_path / "model.safetensors", {**arrays, "head": const(1, 4, 2)})
    lazy = plan_of(tmp_path, [tie], specs(arrays)).lazy()
    assert lazy["head"] is lazy["embed"]


def test_what_cannot_be_loaded_is_refused_at_once(source: Path) -> None:
    plan = plan_of(source, TM_RULES)
    with pytest.raises(PlanError, match="no files to read"):
        plan.inverse().lazy()
    with pytest.raises(UsageError, match="threads"):
        plan.lazy(threads=0)
    with pytest.raises(KeyError):
        _ = plan.lazy()["nothing"]


def test_several_threads_get_the_same_arrays(source: Path) -> None:
    lazy = build_plan(Checkpoint.open(source), TM_RULES).lazy()
    found: list[list[int]] = []

    def work() -> None:
        found.append([id(lazy[name]) for name in lazy])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(ids == found[0] for ids in found)
    for name, array in tm_fused(4).items():
        assert np.array_equal(np.asarray(lazy[name]), array) and isinstance(lazy[name], mx.array)
