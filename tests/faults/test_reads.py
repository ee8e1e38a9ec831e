"""What a save reads: each byte once, or twice at most, whatever the order of the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import TM_RULES, assert_same, contents, filled, plan_of, specs, tm, tm_fused, write
from weightloom.engine import Checkpoint, PlanError, SplitModulelist, WeightConverter, build_plan
from weightloom.engine.checkpoints.file_source import FileSource
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.saving.save import convert

COUNT = 24


class Counting(FileSource):
    """Counts the bytes that are read."""

    read = 0

    def read_into(self, offset: int, buffer: memoryview) -> None:
        self.read += buffer.nbytes
        super().read_into(offset, buffer)


def counted(path: Path) -> tuple[Checkpoint, Counting]:
    whole = Checkpoint.open(path)
    source = Counting(path)
    shard = replace(whole.shards[0], source=source)
    places = {entry.name: (source, shard.header.data_start + entry.start) for entry in shard.header.entries}
    return replace(whole, shards=(shard,), _places=places), source


SPREAD = [
    WeightConverter(f"experts.{part}_proj", f"experts.*.{part}_proj.weight", [SplitModulelist(0)])
    for part in ("gate", "down")
]


def test_results_of_a_cast_group_that_lie_apart_are_computed_once(tmp_path: Path) -> None:
    """Experts alternate between two stacks in the file that is written; each stack is read once."""
    file = filled({"experts.gate_proj": (COUNT, 8, 16), "experts.down_proj": (COUNT, 16, 8)})
    checkpoint, source = counted(write(tmp_path / "in" / "model.safetensors", file))
    plan = with_dtype(build_plan(checkpoint, SPREAD), "F16")
    convert(plan, tmp_path / "out")
    assert source.read <= 2 * checkpoint.nbytes
    found = plan_of(tmp_path / "out").load()
    assert_same(
        found,
        {
            f"experts.{n}.{part}_proj.weight": file[f"experts.{part}_proj"][n].astype(np.float16)
            for n in range(COUNT)
            for part in ("gate", "down")
        },
    )


def test_a_plain_conversion_reads_each_byte_once(tmp_path: Path) -> None:
    checkpoint, source = counted(write(tmp_path / "in" / "model.safetensors", tm(COUNT)))
    convert(build_plan(checkpoint, TM_RULES), tmp_path / "out")
    assert source.read == checkpoint.nbytes
    assert_same(plan_of(tmp_path / "out").load(), tm_fused(COUNT))


def test_parameters_that_are_not_row_major_are_cut_right(tmp_path: Path) -> None:
    """Tensors of two stacks take turns in the file; both stacks are transposed views."""
    write(tmp_path / "in" / "model.safetensors", tm(COUNT))
    plan = plan_of(tmp_path / "in", TM_RULES, specs(tm_fused(COUNT)))
    swapped = {name: np.ascontiguousarray(array.transpose(0, 2, 1)) for name, array in tm_fused(COUNT).items()}
    turned = {name: mx.array(array).transpose(0, 2, 1) for name, array in swapped.items()}
    mx.eval(*turned.values())
    plan.save(turned, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


def test_a_plan_that_was_turned_round_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in" / "model.safetensors", tm(2))
    plan = plan_of(tmp_path / "in", TM_RULES)
    loaded = plan.load()
    with pytest.raises(PlanError, match="no files to read"):
        convert(plan.inverse(), tmp_path / "out")
    with pytest.raises(PlanError, match="turned round"):
        plan.inverse().save(loaded, tmp_path / "out")
    with pytest.raises(PlanError, match="no files to read"):
        plan.inverse().load()
    plan.inverse().inverse().save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")
