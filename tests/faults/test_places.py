"""Where a save goes and where a checkpoint lies: over its source, inside it, read-only places, a hub's cache."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.cases.fixtures import (
    INDEX,
    TM_RULES,
    Arrays,
    assert_same,
    const,
    contents,
    halves,
    iota,
    names_in,
    tm,
    tm_fused,
    write,
    write_sharded,
)
from tests.engine.fault_shim import CountingFiles, beside
from weightloom.engine import Checkpoint, PlanError, StorageError, UsageError, WeightConverter, build_plan
from weightloom.engine.ops import Chunk
from weightloom.engine.saving.save import convert, copy_checkpoint, save


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = write_sharded(tmp_path / "source", halves({**tm(4), "unused.w": const(4.0, 3)}))
    (folder / "config.json").write_bytes(b"{}")
    return folder


def test_a_save_over_its_own_source(source: Path) -> None:
    """Byte-equal, since the open files are still the old ones; a second save wants the files opened again."""
    before = contents(source)
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    loaded = plan.load()
    plan.save(loaded, source, overwrite=True)
    assert contents(source) == before and beside(source) == []
    again = build_plan(Checkpoint.open(source), TM_RULES)
    again.save(again.load(), source, overwrite=True, max_shard_bytes=1 << 20)
    assert set(contents(source)) == {"model.safetensors", "config.json"}
    assert_same(build_plan(Checkpoint.open(source), TM_RULES).load(), {**tm_fused(4), "unused.w": const(4.0, 3)})


def test_a_conversion_and_a_copy_over_their_own_source(source: Path) -> None:
    before = contents(source)
    copy_checkpoint(Checkpoint.open(source), source, overwrite=True)
    assert contents(source) == before
    convert(build_plan(Checkpoint.open(source), TM_RULES), source, overwrite=True)
    assert names_in(source) == {*tm_fused(4), "unused.w"}
    assert beside(source) == []


def test_a_save_over_a_source_that_is_one_file_of_another_name(tmp_path: Path) -> None:
    path = write(tmp_path / "m" / "vision.safetensors", {"w": iota(4)})
    before = contents(tmp_path)
    plan = build_plan(Checkpoint.open(path), [])
    plan.save(plan.load(), path.parent, overwrite=True)
    assert contents(tmp_path) == before


def test_a_target_inside_the_source(source: Path) -> None:
    before = contents(source)
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    plan.save(plan.load(), source / "deep" / "copy")
    found = contents(source)
    assert {name: found[name] for name in before} == before
    assert contents(source / "deep" / "copy") == {n: data for n, data in before.items() if n != "config.json"}
    plan.save(plan.load(), source / "deep" / "copy", overwrite=True)
    assert sorted(path.name for path in (source / "deep").iterdir()) == ["copy"]


def test_a_source_inside_the_target(source: Path, tmp_path: Path) -> None:
    """The source is carried over with the rest of the target."""
    (tmp_path / "model.safetensors").write_bytes(b"old")
    before = contents(source)
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    plan.save(plan.load(), tmp_path, overwrite=True)
    assert contents(tmp_path / "source") == before
    assert not (tmp_path / "model.safetensors").exists() and (tmp_path / INDEX).exists()
    assert_same(build_plan(Checkpoint.open(source), TM_RULES).load(), {**tm_fused(4), "unused.w": const(4.0, 3)})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_parent_that_cannot_be_written(source: Path, tmp_path: Path) -> None:
    parent = tmp_path / "locked"
    parent.mkdir(mode=0o555)
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    with pytest.raises(StorageError, match="permission denied") as caught:
        plan.save(plan.load(), parent / "model")
    assert caught.value.file and list(parent.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_file_system_that_refuses_every_change(source: Path, tmp_path: Path, code: int) -> None:
    """The same as a read-only parent, also where the tests run as root."""
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    loaded, counting = plan.load(), CountingFiles()
    save(plan, loaded, tmp_path / "first", files=counting)
    actions = [action for action, _ in counting.calls]
    first_change = 1 + min(actions.index("create"), actions.index("make the directory"))
    with pytest.raises(StorageError, match="permission denied") as caught:
        save(plan, loaded, tmp_path / "second", files=CountingFiles(first_change, "errors", code=code))
    assert caught.value.file and caught.value.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "source"]


@pytest.mark.parametrize("place", ["file/model", "file", "nul\0"])
def test_a_target_that_cannot_be_a_directory(source: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    before = contents(tmp_path)
    with pytest.raises((StorageError, UsageError)):
        plan.save(plan.load(), str(tmp_path / place), overwrite=True)
    assert contents(tmp_path) == before


def hub_cache(root: Path, arrays: Arrays) -> Path:
    """A snapshot whose files are links to blobs that are named by their hash."""
    blobs, snapshot = root / "blobs", root / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    write(blobs / "0123abcd", arrays)
    (blobs / "4567ef").write_bytes(b"{}")
    (snapshot / "model.safetensors").symlink_to("../../blobs/0123abcd")
    (snapshot / "config.json").symlink_to("../../blobs/4567ef")
    return snapshot


def test_a_hubs_cache(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path / "hub", tm(2))
    plan = build_plan(Checkpoint.open(snapshot), TM_RULES)
    assert plan.checkpoint is not None and plan.checkpoint.files == (snapshot / "model.safetensors",)
    loaded = plan.load()
    assert_same(loaded, tm_fused(2))
    save(plan, loaded, tmp_path / "out", side_files={"config.json": snapshot / "config.json"})
    assert contents(tmp_path / "out") == contents(snapshot)
    assert not any(path.is_symlink() for path in (tmp_path / "out").iterdir())


def test_a_save_into_a_hubs_cache_leaves_the_blobs_alone(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path / "hub", tm(2))
    blobs = contents(tmp_path / "hub" / "blobs")
    plan = build_plan(Checkpoint.open(snapshot), TM_RULES)
    convert(plan, snapshot, overwrite=True)
    assert names_in(snapshot) == set(tm_fused(2))
    assert contents(tmp_path / "hub" / "blobs") == blobs
    assert (snapshot / "config.json").is_symlink() and (snapshot / "config.json").read_bytes() == b"{}"


def test_a_blob_that_is_opened_by_its_hash(tmp_path: Path) -> None:
    """A file without a weight file's name is saved under one that a reader finds."""
    blob = hub_cache(tmp_path / "hub", tm(2)).parents[1] / "blobs" / "0123abcd"
    plan = build_plan(Checkpoint.open(blob), TM_RULES)
    (path,) = plan.save(plan.load(), tmp_path / "out")
    assert path.name == "model.safetensors" and path.read_bytes() == blob.read_bytes()
    assert names_in(tmp_path / "out") == set(tm(2))


def test_files_that_a_reader_would_not_find_together_get_an_index(tmp_path: Path) -> None:
    first, second = halves(tm(2))
    files = [write(tmp_path / "model.safetensors", first), write(tmp_path / "more.safetensors", second)]
    plan = build_plan(Checkpoint.from_files(files), TM_RULES)
    plan.save(plan.load(), tmp_path / "out")
    assert set(contents(tmp_path / "out")) == {"model.safetensors", "more.safetensors", INDEX}
    assert names_in(tmp_path / "out") == set(tm(2))
    assert all((tmp_path / "out" / path.name).read_bytes() == path.read_bytes() for path in files)


def test_two_source_files_of_one_name(tmp_path: Path) -> None:
    files = [write(tmp_path / side / "model.safetensors", part) for side, part in zip("ab", halves(tm(2)), strict=True)]
    plan = build_plan(Checkpoint.from_files(files), TM_RULES)
    with pytest.raises(PlanError, match=r"two source files are called model\.safetensors"):
        plan.save(plan.load(), tmp_path / "out")
    plan.save(plan.load(), tmp_path / "out", max_shard_bytes=200)
    assert names_in(tmp_path / "out") == set(tm(2))


def test_loose_files_are_not_put_beside_others(tmp_path: Path) -> None:
    """Two loose files in a directory with a third that stays would be read as three."""
    for name in "ab":
        write(tmp_path / "source" / f"{name}.safetensors", {name: const(1.0, 2)})
    write(tmp_path / "target" / "model.safetensors", {"old": const(1.0, 2)})
    write(tmp_path / "target" / "c.safetensors", {"c": const(1.0, 2)})
    before = contents(tmp_path)
    plan = build_plan(Checkpoint.open(tmp_path / "source"), [])
    loaded = plan.load()
    with pytest.raises(UsageError, match=r"c\.safetensors"):
        plan.save(loaded, tmp_path / "target", overwrite=True)
    assert contents(tmp_path) == before
    plan.save(loaded, tmp_path / "target", overwrite=True, max_shard_bytes=8)
    assert names_in(tmp_path / "target") == {"a", "b"}


@pytest.mark.parametrize("name", ["../x", "/x", "", "a/../../x", "nul\0", "model-00001-of-00002.safetensors", INDEX])
def test_a_side_file_may_not_leave_the_directory_or_replace_a_weight_file(
    source: Path, tmp_path: Path, name: str
) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    with pytest.raises(UsageError, match="side file") as caught:
        save(plan, plan.load(), tmp_path / "out", side_files={name: b"x"})
    assert caught.value.field == "side_files" and not (tmp_path / "out").exists()


def test_a_side_file_that_cannot_be_read(source: Path, tmp_path: Path) -> None:
    plan = build_plan(Checkpoint.open(source), TM_RULES)
    with pytest.raises(StorageError) as caught:
        save(plan, plan.load(), tmp_path / "out", side_files={"config.json": tmp_path / "absent.json"})
    assert caught.value.file == str(tmp_path / "absent.json")
    assert not (tmp_path / "out").exists() and beside(tmp_path / "out") == ["source"]


def test_nothing_is_made_where_the_parameters_do_not_fit(source: Path, tmp_path: Path) -> None:
    plan = build_plan(Checkpoint.open(source), [WeightConverter("unused.w", ["a", "b"], [Chunk(0)])])
    with pytest.raises(PlanError):
        plan.save({}, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep").exists()
