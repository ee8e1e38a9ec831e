"""Rows that are no parameter: kept for the way back; rows that no source has: zeros, and zeros they must stay."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.engine.layouts import check, counted, opened, plan_specs, same_file
from tests.laws.worlds import bytes_of
from weightloom.engine import (
    Checkpoint,
    NotInvertible,
    Pad,
    PlanError,
    Sharding,
    TensorSpec,
    Tie,
    Unpad,
    WeightConverter,
    build_plan,
    save_plan,
)
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.saving.save import convert

CONFIG = {"vocab_size": 8, "text_config": {"unpadded_vocab_size": 5}}
UNPAD = WeightConverter("head.weight", "lm_head.weight", [Unpad(0, "text_config.unpadded_vocab_size", "vocab_size")])
PAD = WeightConverter("small", "large", [Pad(0, size=8, unpadded=5)])


def saved(folder: Path) -> dict[str, bytes]:
    with Checkpoint.open(folder) as checkpoint:
        plan = build_plan(checkpoint, [])
        return {name: bytes_of(array) for name, array in plan.load(threads=1).items()}


def test_padding_is_cut_off_and_comes_back(tmp_path: Path) -> None:
    array = counted(8, 3)
    check({"head.weight": array}, [UNPAD], {"lm_head.weight": array[:5]}, tmp_path, CONFIG)


def test_a_changed_parameter_goes_with_the_padding_of_the_source(tmp_path: Path) -> None:
    array = counted(8, 3)
    with opened({"head.weight": array}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [UNPAD], config=CONFIG)
        params = plan.load()
        params["lm_head.weight"] = mx.zeros_like(params["lm_head.weight"])
        plan.save(params, tmp_path / "target")
    expected = np.concatenate([np.zeros((5, 3), np.uint16), array[5:]])
    assert saved(tmp_path / "target")["head.weight"] == expected.tobytes()


def test_the_padding_follows_the_parameter_s_new_type(tmp_path: Path) -> None:
    array = counted(8, 3, start=0x3F80)
    with opened({"head.weight": array}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [UNPAD], config=CONFIG)
        params = {name: each.astype(mx.float32) for name, each in plan.load().items()}
        plan.save(params, tmp_path / "target")
    widened = (array.astype(np.uint32) << 16).view(np.float32)
    assert saved(tmp_path / "target")["head.weight"] == widened.tobytes()


def test_the_padding_comes_back_after_a_widening_load(tmp_path: Path) -> None:
    """The remainder is wide while it is held, as the parameter is."""
    with opened({"head.weight": counted(8, 3)}, tmp_path) as checkpoint:
        plan = with_dtype(build_plan(checkpoint, [UNPAD], config=CONFIG), "F32")
        assert plan.params["lm_head.weight"] == TensorSpec("F32", (5, 3))
        plan.save(plan.load(), tmp_path / "target")
    assert same_file(tmp_path)


def test_a_model_that_was_never_loaded_is_padded_with_zeros(tmp_path: Path) -> None:
    plan = save_plan([UNPAD], {"lm_head.weight": TensorSpec("F32", (5, 2))}, CONFIG)
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    plan.save({"lm_head.weight": mx.array(values)}, tmp_path / "target")
    assert saved(tmp_path / "target") == {"head.weight": np.pad(values, ((0, 3), (0, 0))).tobytes()}


def test_without_the_padded_size_it_cannot_be_written() -> None:
    rule = WeightConverter("head.weight", "lm_head.weight", [Unpad(0, 5)])
    with pytest.raises(NotInvertible, match="not known here"):
        save_plan([rule], {"lm_head.weight": TensorSpec("F32", (5, 2))})


def test_a_file_without_padding_stays_as_it_is(tmp_path: Path) -> None:
    array = counted(5, 3)
    with opened({"head.weight": array}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [UNPAD], config=CONFIG)
        params = plan.load()
        assert bytes_of(params["lm_head.weight"]) == array.tobytes()
        plan.save(params, tmp_path / "target")
        assert same_file(tmp_path)


def test_both_ends_of_a_tie_have_padding_of_their_own(tmp_path: Path) -> None:
    one = counted(8, 3)
    other = np.concatenate([one[:5], counted(3, 3, start=900)])
    rule = WeightConverter(r"(embed|head)\.weight", r"m.\1.weight", [Unpad(0, 5, 8)])
    tie = Tie(r"^m\.head\.weight", "m.embed.weight")
    specs = {f"m.{name}.weight": TensorSpec("BF16", (5, 3)) for name in ("embed", "head")}
    with opened({"head.weight": other, "embed.weight": one}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [rule, tie], specs)
        assert plan.report.tied[0].copy
        plan.save(plan.load(), tmp_path / "target")
        assert same_file(tmp_path)


def test_a_shard_of_an_unpadded_table(tmp_path: Path) -> None:
    array = counted(8, 3)
    with opened({"head.weight": array}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [WeightConverter("head.weight", "lm_head.weight", [Unpad(0, 6)])])
        part = plan.load(Sharding(1, 2, {"lm_head": "column"}))["lm_head.weight"]
    assert bytes_of(part) == array[3:6].tobytes()


@pytest.mark.parametrize(("rows", "seen"), [(4, "4 rows along dim 0"), (3, "3 rows")])
def test_too_few_rows_are_refused(rows: int, seen: str) -> None:
    plan = plan_specs({"head.weight": TensorSpec("F32", (rows, 2))}, [UNPAD], config=CONFIG)
    with pytest.raises(PlanError, match=seen):
        plan.check()


def test_rows_are_filled_with_zeros(tmp_path: Path) -> None:
    array = counted(5, 3)
    check({"small": array}, [PAD], {"large": np.pad(array, ((0, 3), (0, 0)))}, tmp_path)


def test_values_that_the_file_has_no_place_for_refuse_the_save(tmp_path: Path) -> None:
    with opened({"small": counted(5, 3)}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [PAD])
        params = plan.load()
        params["large"] = mx.ones_like(params["large"])
        with pytest.raises(NotInvertible, match="large has values in rows") as seen:
            plan.save(params, tmp_path / "target")
    assert (seen.value.tensor, seen.value.rule is not None) == ("large", True)
    assert not (tmp_path / "target").exists()


def test_too_many_rows_are_refused() -> None:
    plan = plan_specs({"small": TensorSpec("F32", (9, 2))}, [PAD])
    with pytest.raises(PlanError, match="9 rows along dim 0"):
        plan.check()


def test_one_layout_s_padding_goes_into_the_other_s(tmp_path: Path) -> None:
    """From one padded layout to another, disk to disk: the rows that are no parameter go along."""
    array = counted(8, 3)
    other = WeightConverter("table", "lm_head.weight", [Unpad(0, 5, 8)])
    with opened({"head.weight": array}, tmp_path) as checkpoint:
        first = build_plan(checkpoint, [UNPAD], config=CONFIG)
        second = save_plan([other], {"lm_head.weight": TensorSpec("BF16", (5, 3))})
        convert(first.then(second.inverse()), tmp_path / "target")
    assert saved(tmp_path / "target") == {"table": array.tobytes()}


def test_padding_is_left_out_of_a_layout_without_it(tmp_path: Path) -> None:
    array = counted(8, 3)
    with opened({"head.weight": array, "x": counted(2)}, tmp_path) as checkpoint:
        first = build_plan(checkpoint, [UNPAD], config=CONFIG)
        second = save_plan([], {"lm_head.weight": TensorSpec("BF16", (5, 3)), "x": TensorSpec("BF16", (2,))})
        plan = first.then(second.inverse())
        convert(plan, tmp_path / "target")
        assert plan.inverse().inverse() == plan
    assert saved(tmp_path / "target")["lm_head.weight"] == array[:5].tobytes()
