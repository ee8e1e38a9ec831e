"""What a rank reads is what was foretold from headers; where it is more than its part, a note says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.fixtures import TM_RULES, halves, tm, write_sharded
from tests.laws.sources import NotedSource, in_memory, of_array, with_sources
from tests.laws.worlds import Tensor, World
from tests.strategies import share
from weightloom.engine import Checkpoint, Plan, Sharding, Transpose, WeightConverter, build_plan
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.reading.read_bytes import parts_read, reading_notes


def read_by(plan: Plan, sources: list[NotedSource], sharding: Sharding) -> int:
    for source in sources:
        source.reads.clear()
    plan.load(sharding, threads=1)
    return sum(length for source in sources for _, length in source.reads)


@share(0.2)
@given(
    st.sampled_from((1, 2, 5, 300)),
    st.sampled_from((2, 8, 700)),
    st.sampled_from(("column", "row", "packed")),
    st.data(),
)
def test_what_is_read_was_foretold(
    tmp_path_factory: pytest.TempPathFactory, rows: int, columns: int, kind: str, data: st.DataObject
) -> None:
    array = np.zeros((4 * rows, 2 * columns), np.uint16)
    ops = [Transpose()] if data.draw(st.booleans()) else []
    tensors = {"w": of_array(array, "U16")}
    with in_memory(tensors, tmp_path_factory.mktemp("w")) as opened:
        checkpoint, sources = with_sources(opened, NotedSource)
        plan = World(tensors, (WeightConverter("w", "v", ops),) if ops else ()).plan(checkpoint)
        sharding = Sharding(data.draw(st.integers(0, 1)), 2, {"v" if ops else "w": kind})  # type: ignore[dict-item]
        assert sum(part.read for part in parts_read(plan, sharding)) == read_by(plan, sources, sharding)


def opened(tmp_path: Path) -> tuple[Plan, list[NotedSource]]:
    checkpoint, sources = with_sources(Checkpoint.open(write_sharded(tmp_path / "m", halves(tm(4)))), NotedSource)
    return build_plan(checkpoint, TM_RULES), sources


def test_an_expert_cut_reads_the_ranks_own_bytes(tmp_path: Path) -> None:
    plan, sources = opened(tmp_path)
    sharding = Sharding(1, 2, {"experts": "expert"})
    parts = list(parts_read(plan, sharding))
    assert sum(part.read for part in parts) == read_by(plan, sources, sharding)
    assert {part.name for part in parts if part.kind == "expert"} == {name for name in plan.params if "experts" in name}
    assert all(part.read == part.needed for part in parts) and reading_notes(plan, sharding) == ()


def test_a_row_cut_with_short_runs_reads_the_whole_and_says_so(tmp_path: Path) -> None:
    plan, sources = opened(tmp_path)
    sharding = Sharding(0, 2, {"down_proj": "row"})
    whole = sum(part.read for part in parts_read(plan, Sharding(0, 2, {})))
    assert read_by(plan, sources, sharding) > 0.9 * whole
    (note,) = reading_notes(plan, sharding)
    assert "down" in note and "cut by row" in note and "64 KiB" in note


def test_what_is_computed_from_the_whole_says_so_too(tmp_path: Path) -> None:
    array = np.zeros((512, 512), np.float32)
    tensors: dict[str, Tensor] = {"w": of_array(array, "F32")}
    with in_memory(tensors, tmp_path) as checkpoint:
        plan = with_dtype(World(tensors, ()).plan(checkpoint), "BF16")
        (part,) = parts_read(plan, Sharding(0, 2, {"w": "column"}))
    assert (part.needed, part.read) == (array.nbytes // 2, array.nbytes // 2)
