"""Cases C70-C73, C75: several files, what lies beside them, and what a save leaves in a directory."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import (
    INDEX,
    assert_same,
    const,
    contents,
    halves,
    plan_of,
    t0,
    write,
    write_index,
    write_sharded,
)
from weightloom.engine import Checkpoint, CheckpointError
from weightloom.engine.saving.save import copy_checkpoint, save


@pytest.mark.case("C70")
def test_c70_a_shard_that_the_index_names_and_is_not_there(tmp_path: Path) -> None:
    """C70: opening stops before any weights, and lists the missing file."""
    write_sharded(tmp_path, halves(t0()))
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model-00002-of-00002.safetensors") as caught:
        Checkpoint.open(tmp_path)
    assert "incomplete download?" in str(caught.value)


@pytest.mark.case("C71")
def test_c71_a_stray_file_beside_the_index(tmp_path: Path) -> None:
    """C71: the index decides; the stray `model.safetensors` changes nothing and is mentioned."""
    write_sharded(tmp_path, halves(t0()))
    write(tmp_path / "model.safetensors", {"model.norm.weight": const(9.0, 8)})
    plan = plan_of(tmp_path)
    assert_same(plan.load(), t0())
    assert any("model.safetensors" in note for note in plan.report.notes)


@pytest.mark.case("C72")
def test_c72_an_overlay_shard_counts_where_the_index_says_so(tmp_path: Path) -> None:
    """C72: `a` is const 2 from the overlay, and both files are saved back as they were."""
    write(tmp_path / "in" / "base.safetensors", {"a": const(1.0, 4), "b": const(3.0, 4)})
    write(tmp_path / "in" / "overlay.safetensors", {"a": const(2.0, 4)})
    write_index(tmp_path / "in", {"a": "overlay.safetensors", "b": "base.safetensors"})
    plan = plan_of(tmp_path / "in")
    loaded = plan.load()
    assert_same(loaded, {"a": const(2.0, 4), "b": const(3.0, 4)})
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C72")
def test_c72_an_index_that_is_made_anew_still_takes_the_overlay(tmp_path: Path) -> None:
    """C72: after a change of dtype, with the overlay's name before the base's; the shadowed tensor is kept."""
    write(tmp_path / "in" / "an-overlay.safetensors", {"a": const(2.0, 4)})
    write(tmp_path / "in" / "base.safetensors", {"a": const(1.0, 4), "b": const(3.0, 4)})
    write_index(tmp_path / "in", {"a": "an-overlay.safetensors", "b": "base.safetensors"})
    plan = plan_of(tmp_path / "in")
    plan.save({name: array.astype(mx.float16) for name, array in plan.load().items()}, tmp_path / "out")
    again = plan_of(tmp_path / "out").load()
    assert {name: (array.dtype, float(array[0])) for name, array in again.items()} == {
        "a": (mx.float16, 2.0),
        "b": (mx.float16, 3.0),
    }
    assert Checkpoint.open(tmp_path / "out" / "base.safetensors").tensors["a"].dtype == "F32"


@pytest.mark.case("C72")
def test_c72_one_name_in_two_files_without_an_index(tmp_path: Path) -> None:
    """C72: without an index it is an error that names both files."""
    write(tmp_path / "base.safetensors", {"a": const(1.0, 4)})
    write(tmp_path / "overlay.safetensors", {"a": const(2.0, 4)})
    with pytest.raises(CheckpointError, match=r"base.safetensors and .*overlay.safetensors") as caught:
        Checkpoint.open(tmp_path)
    assert caught.value.tensor == "a"


@pytest.mark.case("C73")
def test_c73_a_save_leaves_no_old_shard(tmp_path: Path) -> None:
    """C73: three old shards, a save that needs two: the directory has the new index's files; reload equals memory."""
    names = list(t0())
    write_sharded(tmp_path / "out", [{n: const(7.0, 2) for n in names[k::3]} for k in range(3)])
    (tmp_path / "out" / "README.md").write_text("not ours")
    write(tmp_path / "in" / "model.safetensors", t0())
    plan = plan_of(tmp_path / "in")
    loaded = plan.load()
    half = plan.nbytes // 2 + 200
    written = plan.save(loaded, tmp_path / "out", overwrite=True, max_shard_bytes=half)
    shards = {f"model-0000{k}-of-00002.safetensors" for k in (1, 2)}
    assert {path.name for path in written} == {*shards, INDEX}
    assert set(contents(tmp_path / "out")) == {*shards, INDEX, "README.md"}
    index = json.loads((tmp_path / "out" / INDEX).read_bytes())
    assert set(index["weight_map"].values()) == shards
    assert_same(plan_of(tmp_path / "out").load(), {name: np.array(array) for name, array in loaded.items()})


TRAVEL = (
    "generation_config.json",
    "preprocessor_config.json",
    "chat_template.jinja",
    "added_tokens.json",
    "x/model.py",
)


@pytest.mark.case("C75")
def test_c75_side_files_travel_byte_for_byte(tmp_path: Path) -> None:
    """C75: side files travel as they are, in folders too; an old index and `hf_quant_config.json` stay behind."""
    source = write_sharded(tmp_path / "in", halves(t0()))
    (source / "x").mkdir()
    for number, name in enumerate((*TRAVEL, "hf_quant_config.json")):
        (source / name).write_bytes(bytes([number, 0, 255]) * 5)
    side_files = {name: source / name for name in TRAVEL}
    plan = plan_of(source)
    config = {"config.json": b'{"model_type": "llama"}\n'}
    save(plan, plan.load(), tmp_path / "one", side_files={**side_files, **config}, max_shard_bytes=1 << 20)
    copy_checkpoint(Checkpoint.open(source), tmp_path / "two", side_files=side_files)
    found = contents(tmp_path / "one")
    assert set(found) == {"model.safetensors", "config.json", *TRAVEL}
    assert found["config.json"] == config["config.json"]
    for name in TRAVEL:
        assert found[name] == contents(tmp_path / "two")[name] == (source / name).read_bytes()
    assert set(contents(tmp_path / "two")) == set(contents(source)) - {"hf_quant_config.json"}
