"""Law 1: what was loaded is saved back byte for byte, whole shards and the index; else the save is refused."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.disk import hashes, layouts, write_files
from tests.laws.worlds import check_values, worlds
from tests.strategies import share
from weightloom.engine import Checkpoint


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
