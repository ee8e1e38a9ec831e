"""Law 3: a plan is built, checked, printed and turned round from headers alone."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.disk import layouts, write_files
from tests.laws.sources import DataWasRead, SilentSource, with_sources
from tests.laws.worlds import worlds
from tests.strategies import share
from weightloom.engine import Checkpoint, NotInvertible
from weightloom.engine.reading.memory import memory


@share(0.3)
@given(st.data())
def test_no_byte_of_data_is_read(data: st.DataObject) -> None:
    world = data.draw(worlds())
    files = data.draw(layouts(world.tensors))
    with TemporaryDirectory() as place, Checkpoint.open(write_files(Path(place), files)) as opened:
        checkpoint, _ = with_sources(opened, SilentSource)
        plan = world.plan(checkpoint)
        plan.check()
        assert plan.ok() and plan.invertible
        assert plan.inverse().inverse() == plan
        plan.to_json(), plan.table(), str(plan.report), repr(plan)
        assert plan.nbytes <= plan.peak_bytes <= memory(plan, 4).total
        for name in (*world.tensors, *world.params):
            assert plan.explain(name)
        if any(each.data for each in world.params.values()):
            with pytest.raises(DataWasRead):
                plan.load()


def test_a_tie_is_a_check_in_the_plan_and_made_before_any_parameter(tmp_path: Path) -> None:
    from tests.laws.sources import in_memory
    from tests.laws.worlds import World, tensor
    from weightloom.engine import PlanError, Tie

    ends = {"head.w": tensor("F32", (3, 3), 1), "embed.w": tensor("F32", (3, 3), 2)}
    world = World(ends, (Tie("^head", "embed"),), ends, closed=True)
    with in_memory(ends, tmp_path) as checkpoint:
        plan = world.plan(checkpoint)
        assert [(tied.parameter, tied.other, tied.copy) for tied in plan.report.tied] == [("head.w", "embed.w", True)]
        with pytest.raises(PlanError, match=r"head\.w and embed\.w differ") as seen:
            plan.load()
        assert seen.value.tensor == "head.w"


def test_not_invertible_is_known_from_headers() -> None:
    from weightloom.engine import RuleSet, TensorSpec, Transpose, WeightConverter, build_plan

    rule = WeightConverter("a", "b", [Transpose()], fidelity="lossy", why="rounds")
    plan = build_plan(Checkpoint.from_specs({"a": TensorSpec("F32", (2, 3))}), RuleSet([rule]))
    assert not plan.invertible
    with pytest.raises(NotInvertible, match=r"a -> b \[Transpose\]: rounds"):
        plan.inverse()
