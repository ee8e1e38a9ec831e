"""What a layout has no room for: left out of a save, kept where plans are put together; and Add, which rounds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import (
    Absent,
    Add,
    Checkpoint,
    Chunk,
    NotInvertible,
    Plan,
    PlanError,
    RuleError,
    RuleSet,
    Scope,
    TensorSpec,
    Tie,
    WeightConverter,
    WeightRenaming,
    build_plan,
    save_plan,
)
from weightloom.engine.saving.restoring import same_bytes

F4 = TensorSpec("F32", (4,))


def composed(checkpoint: Checkpoint, first: RuleSet, second: RuleSet) -> Plan:
    plan = build_plan(checkpoint, first)
    return plan.then(save_plan(second, plan.params).inverse())


def test_an_absent_parameter_is_not_written_and_is_named_with_the_rule() -> None:
    plan = save_plan([Absent(r"^tower\.", why="text alone"), WeightRenaming("^b", "a")], {"tower.w": F4, "a.w": F4})
    assert list(plan.sources) == ["b.w"]
    assert [(each.parameter, each.why) for each in plan.report.absent] == [("tower.w", "text alone")]
    assert "tower.w" in str(plan.report)


def test_a_scope_and_a_condition_count() -> None:
    params = {"model.text.w": F4, "model.image.w": F4}
    inside = Absent("^w", scope=Scope("image", "model"))
    assert list(save_plan([inside], params).sources) == ["model.text.w"]
    asleep = Absent("image", when="vision_config")
    assert len(save_plan([asleep], params, {}).sources) == 2
    assert len(save_plan([asleep], params, {"vision_config": {"a": 1}}).sources) == 1


def test_a_load_still_misses_it() -> None:
    checkpoint = Checkpoint.from_specs({"a.w": F4})
    plan = build_plan(checkpoint, [Absent("^tower")], {"a.w": F4, "tower.w": F4})
    assert plan.report.missing == ("tower.w",) and not plan.ok()


def test_its_sources_are_kept_where_two_plans_meet() -> None:
    checkpoint = Checkpoint.from_specs({"a.w": F4, "tower.w": F4})
    plan = composed(checkpoint, RuleSet(()), RuleSet([Absent("^tower")]))
    assert list(plan.params) == ["a.w"]
    assert [(kept.name, kept.reason) for kept in plan.kept] == [("tower.w", "absent")]


def test_half_of_a_tensor_that_is_absent_is_a_remainder_of_its_group(tmp_path: Path) -> None:
    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    checkpoint = Checkpoint.from_arrays({"ab.w": data})
    first = RuleSet([WeightConverter("ab.w", ["a.w", "b.w"], [Chunk(0)])])
    plan = composed(checkpoint, first, RuleSet([Absent("^b")]))
    (group,) = plan.groups
    assert group.targets == ("a.w",) and len(group.program.out_specs) == 2
    assert np.array_equal(np.array(plan.load()["a.w"]), data[:2])
    plan.save({"a.w": mx.zeros((2, 2))}, tmp_path)
    found = np.array(mx.load(str(tmp_path / "model.safetensors"))["ab.w"])
    assert np.array_equal(found, np.concatenate([np.zeros((2, 2)), data[2:]]))


def test_another_parameter_that_is_not_taken_is_still_an_error() -> None:
    plan = build_plan(Checkpoint.from_specs({"a.w": F4, "b.w": F4}), ())
    with pytest.raises(PlanError, match="not taken by the second"):
        plan.then(save_plan([], {"a.w": F4}).inverse())


def test_a_second_copy_goes_where_its_other_end_goes(tmp_path: Path) -> None:
    data = np.arange(4, dtype=np.float32)
    checkpoint = Checkpoint.from_arrays({"head.w": data, "embed.w": data})
    tie = Tie("^head", "embed")
    plan = composed(checkpoint, RuleSet([tie]), RuleSet([tie, WeightRenaming("^e", "embed")]))
    assert list(plan.load()) == ["e.w"]
    assert not plan.kept
    back = plan.inverse()
    assert {group.targets[0]: group.sources for group in (*back.groups, *back.copies)} == {
        "embed.w": ("e.w",),
        "head.w": ("e.w",),
    }


@given(st.integers(0, 1 << 20), st.sampled_from(["float32", "float16", "bfloat16"]))
def test_add_adds_and_its_save_gives_the_original_back_while_nothing_changed(seed: int, dtype: str) -> None:
    from tempfile import TemporaryDirectory

    values = mx.array(np.random.default_rng(seed).normal(size=8)).astype(getattr(mx, dtype))
    checkpoint = Checkpoint.from_arrays({"norm.w": values})
    plan = build_plan(checkpoint, [WeightConverter("norm.w", "norm.w", [Add(-1)], fidelity="keeps")])
    assert plan.invertible
    params = plan.load()
    assert mx.array_equal(params["norm.w"], values - 1).item()
    with TemporaryDirectory() as folder:
        plan.save(params, folder)
        assert mx.array_equal(mx.load(f"{folder}/model.safetensors")["norm.w"], values).item()
    with TemporaryDirectory() as folder:
        plan.save({"norm.w": params["norm.w"] * 2}, folder)
        assert mx.array_equal(mx.load(f"{folder}/model.safetensors")["norm.w"], params["norm.w"] * 2 + 1).item()


def test_a_fresh_model_is_written_with_the_sum_taken_away(tmp_path: Path) -> None:
    plan = save_plan([WeightConverter("norm.w", "norm.w", [Add(-1)], fidelity="keeps")], {"norm.w": F4})
    plan.save({"norm.w": mx.zeros((4,))}, tmp_path)
    assert mx.array_equal(mx.load(str(tmp_path / "model.safetensors"))["norm.w"], mx.ones((4,))).item()


def test_add_takes_floats_and_numbers_alone() -> None:
    plan = build_plan(Checkpoint.from_specs({"w": TensorSpec("I32", (4,))}), [WeightConverter("w", "w", [Add(1)])])
    assert plan.report.mismatched and "Add on" in plan.report.mismatched[0].seen
    with pytest.raises(RuleError, match="value"):
        Add("1")  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="value"):
        Add(True)


def test_what_cannot_be_computed_back_is_refused_without_its_originals() -> None:
    assert Add(1).inverse() == Add(-1)
    step = (
        build_plan(Checkpoint.from_specs({"w": F4}), [WeightConverter("w", "w", [Add(1)])]).groups[0].program.moves[0]
    )
    back = step.inverse()
    assert back.inverse() == step
    with pytest.raises(NotInvertible):
        type(back)(0, step, (F4,), (F4,)).apply((mx.zeros((4,)),))  # type: ignore[call-arg, arg-type, union-attr]


@given(st.binary(max_size=30), st.binary(max_size=30), st.data())
def test_streams_are_compared_however_they_are_cut(one: bytes, other: bytes, draw: st.DataObject) -> None:
    def cut(data: bytes) -> list[memoryview]:
        places = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=4)))
        ends = [0, *places, len(data)]
        return [memoryview(data)[a:b] for a, b in pairwise(ends)]

    assert same_bytes(cut(one), cut(one))
    assert same_bytes(cut(one), cut(other)) == (one == other)
