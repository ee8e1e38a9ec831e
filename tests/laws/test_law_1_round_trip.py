"""Law 1: what was loaded is saved back byte for byte, whole shards and the index; else the save is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.disk import hashes, layouts, write_files
from tests.laws.sources import in_memory
from tests.laws.worlds import check_values, tensor, worlds
from tests.strategies import share
from weightloom.engine import (
    Checkpoint,
    CheckpointError,
    MergeModulelist,
    NotInvertible,
    RuleSet,
    Transpose,
    WeightConverter,
    WeightloomError,
    build_plan,
)


@share(0.6)
@given(st.data())
def test_every_shard_and_the_index_come_back(data: st.DataObject) -> None:
    world = data.draw(worlds())
    files = data.draw(layouts(world.tensors))
    with TemporaryDirectory() as place:
        source = write_files(Path(place) / "source", files)
        with Checkpoint.open(source) as checkpoint:
            plan = world.plan(checkpoint)
            plan.check()
            params = plan.load(threads=1)
            check_values(world, params)
            plan.save(params, Path(place) / "target")
        assert hashes(Path(place) / "target") == hashes(source)


def _grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _shrink(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _overwrite(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def _touch(path: Path) -> None:
    os.utime(path, (1, 1))


def _replace(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def _rewrite_header(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data[:8] + data[8:].replace(b'"a"', b'"c"', 1)[: len(data) - 8])


@pytest.mark.parametrize(
    "change", [_grow, _shrink, _overwrite, _touch, _replace, _rewrite_header, Path.unlink], ids=lambda f: f.__name__
)
def test_a_changed_source_refuses_the_save(tmp_path: Path, change: Callable[[Path], object]) -> None:
    tensors = {"a": tensor("F32", (3,), 1), "b": tensor("I8", (5,), 2)}
    with in_memory(tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [])
        params = plan.load()
        change(tmp_path / "model.safetensors")
        with pytest.raises(WeightloomError) as seen:
            plan.save(params, tmp_path / "target")
        assert seen.value.file == str(tmp_path / "model.safetensors")
        assert isinstance(seen.value, CheckpointError)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_lossy_plan_refuses_before_anything_is_written(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "target"
    if there:
        write_files(target, {"old.txt": b"old"})
    tensors = {"a": tensor("F32", (3, 2), 1)}
    rule = WeightConverter("a", "b", [Transpose()], fidelity="lossy", why="it rounds")
    with in_memory(tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, RuleSet([rule]))
        with pytest.raises(NotInvertible, match="it rounds") as seen:
            plan.save(plan.load(), target, overwrite=True)
    assert seen.value.rule == rule.title()
    assert hashes(target).keys() == {"old.txt"} if there else not target.exists()


def test_a_changed_parameter_changes_the_bytes_of_its_tensors_alone(tmp_path: Path) -> None:
    import mlx.core as mx

    tensors = {f"e.{n}.w": tensor("U8", (2, 3), n) for n in range(3)} | {"other": tensor("F64", (4,), 9)}
    rule = WeightConverter(r"e\.*.w", "e", [MergeModulelist()])
    with in_memory(tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, RuleSet([rule]))
        params = plan.load()
        params["e"] = mx.concatenate([params["e"][:1], params["e"][1:2] ^ 255, params["e"][2:]])
        plan.save(params, tmp_path / "target")
        offset = checkpoint.tensors["e.1.w"].offset
    before = (tmp_path / "model.safetensors").read_bytes()
    after = (tmp_path / "target" / "model.safetensors").read_bytes()
    assert offset is not None
    assert [at for at in range(len(before)) if before[at] != after[at]] == list(range(offset, offset + 6))
