"""Parameters packed and unpacked by a plan: MLX's own words, tied ends alike, lazily too, and what is refused."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, write
from weightloom.engine import (
    Checkpoint,
    Concatenate,
    MergeModulelist,
    NotInvertible,
    Plan,
    PlanError,
    Sharding,
    WeightConverter,
    build_plan,
)
from weightloom.engine.mapping.claims import Tie
from weightloom.engine.quantizing.plans import packed_plan, unpacked_plan
from weightloom.engine.quantizing.quantization import AFFINE_BITS, BLOCK_MODES, Quantization, part_names

WAYS = [Quantization(bits, 32) for bits in AFFINE_BITS] + [Quantization(*p, mode) for mode, p in BLOCK_MODES.items()]
SHAPES = {"a.weight": (48, 96), "b.weight": (16, 64), "norm.weight": (64,)}
EXPERTS = {f"experts.{n}.{part}.weight": (32, 64) for n in range(3) for part in ("gate", "up")}
STACK = WeightConverter(
    ["experts.*.gate.weight", "experts.*.up.weight"], "experts.gate_up", [MergeModulelist(0), Concatenate(1)]
)


def plan_of(folder: Path, shapes: dict[str, tuple[int, ...]], rules: tuple[object, ...] = ()) -> Plan:
    write(folder / "model.safetensors", filled(shapes))
    return build_plan(Checkpoint.open(folder / "model.safetensors"), rules)  # type: ignore[arg-type]


def parts(matrix: mx.array, how: Quantization) -> tuple[mx.array, ...]:
    return tuple(mx.quantize(matrix, how.group_size, how.bits, how.mode))


def assert_same(found: mx.array, expected: mx.array) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.array(found), np.array(expected))


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_words_are_those_of_mlx_and_all_else_stays(tmp_path: Path, how: Quantization) -> None:
    plan = plan_of(tmp_path, SHAPES)
    floats, packed = plan.load(), packed_plan(plan, {"a.weight": how})
    loaded = packed.load()
    expected = dict(zip(part_names("a.weight"), parts(floats["a.weight"], how), strict=False))
    assert set(loaded) == {*expected, "b.weight", "norm.weight"} == set(packed.params)
    for name, array in {**floats, **expected}.items():
        assert_same(loaded[name], array)
        assert packed.params[name].shape == array.shape


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_unpacked_they_are_what_mlx_makes_of_the_words(tmp_path: Path, how: Quantization) -> None:
    plan = plan_of(tmp_path, SHAPES)
    packed = packed_plan(plan, {"a.weight": how})
    back = unpacked_plan(packed, {"a.weight": how})
    words = parts(plan.load()["a.weight"], how)
    made = mx.dequantize(*words, group_size=how.group_size, bits=how.bits, mode=how.mode)
    assert_same(back.load()["a.weight"].view(mx.uint8), made.view(mx.uint8))
    assert set(back.params) == set(SHAPES)


def test_stacks_are_packed_behind_the_join_and_lazily_too(tmp_path: Path) -> None:
    how = Quantization(4, 32)
    plan = plan_of(tmp_path, {**SHAPES, **EXPERTS}, (STACK,))
    packed = packed_plan(plan, {"experts.gate_up": how, "b.weight": Quantization(8, 32, "mxfp8")})
    stack = parts(plan.load()["experts.gate_up"], how)
    assert stack[0].shape == (3, 64, 8)
    lazy = packed.lazy()
    for name, array in zip(part_names("experts.gate_up"), stack, strict=True):
        assert_same(packed.load()[name], array)
        assert_same(lazy[name], array)
    assert "a.weight" in lazy.unread


def test_rows_that_are_packed_some_at_a_time_are_the_whole(tmp_path: Path) -> None:
    how = Quantization(4, 32, "mxfp4")
    plan = plan_of(tmp_path, {"a.weight": (700, 1024)})
    loaded = packed_plan(plan, {"a.weight": how}).load()
    for name, array in zip(part_names("a.weight"), parts(plan.load()["a.weight"], how), strict=False):
        assert_same(loaded[name], array)


def test_the_second_end_of_a_tie_is_packed_with_the_first(tmp_path: Path) -> None:
    how = Quantization(4, 32)
    tie = Tie("head.weight", "b.weight")
    write(tmp_path / "model.safetensors", filled(SHAPES))
    checkpoint = Checkpoint.open(tmp_path / "model.safetensors")
    plan = build_plan(checkpoint, (tie,), {**checkpoint.logical, "head.weight": checkpoint.logical["b.weight"]})
    packed = packed_plan(plan, {"b.weight": how})
    loaded = packed.load()
    assert set(loaded) == set(packed.params)
    for name, other in zip(part_names("head.weight"), part_names("b.weight"), strict=True):
        assert loaded[name] is loaded[other]
    back = unpacked_plan(packed, {"b.weight": how})
    assert set(back.load()) == set(back.params) == {*SHAPES, "head.weight"}


def test_a_packed_plan_has_no_way_back_and_says_why(tmp_path: Path) -> None:
    packed = packed_plan(plan_of(tmp_path, SHAPES), {"a.weight": Quantization(4, 32)})
    assert not packed.invertible
    with pytest.raises(NotInvertible, match=r"quantizing rounds to 4 bits in groups of 32 \(affine\)") as caught:
        packed.inverse()
    assert caught.value.tensor == "a.biases"
    with pytest.raises(NotInvertible):
        packed.save(packed.load(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "how"), [("a.weight", Quantization(4, 64)), ("norm.weight", Quantization(4, 32))])
def test_what_does_not_divide_into_groups_is_named(tmp_path: Path, name: str, how: Quantization) -> None:
    with pytest.raises(PlanError, match=r"to 4 bits in groups of") as caught:
        packed_plan(plan_of(tmp_path, SHAPES), {name: how})
    assert caught.value.tensor == name


def test_a_part_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"a.weight is packed and a.scales is not there"):
        unpacked_plan(plan_of(tmp_path, SHAPES), {"a.weight": Quantization(4, 32)})


@pytest.mark.parametrize("kind", ["column", "row"])
@pytest.mark.parametrize("how", [Quantization(4, 32), Quantization(4, 16, "nvfp4")], ids=str)
def test_a_rank_gets_its_part_of_what_the_whole_is_packed_to(tmp_path: Path, how: Quantization, kind: str) -> None:
    """Law 6: rows and columns in whole groups of what is packed on the way."""
    plan = packed_plan(plan_of(tmp_path, {"a.weight": (48, 128), "norm.weight": (64,)}), {"a.weight": how})
    whole = plan.load()
    halves = [plan.load(Sharding(rank, 2, {r"^a\.": kind})) for rank in range(2)]  # type: ignore[dict-item]
    for name in part_names("a.weight")[: len(how.parts)]:
        assert_same(mx.concatenate([half[name] for half in halves], axis=0 if kind == "column" else 1), whole[name])
    assert_same(halves[1]["norm.weight"], whole["norm.weight"])


def test_a_rank_that_would_tear_a_group_is_refused(tmp_path: Path) -> None:
    plan = packed_plan(plan_of(tmp_path, {"a.weight": (48, 96)}), {"a.weight": Quantization(4, 32)})
    with pytest.raises(PlanError, match=r"a\.(weight|scales|biases)"):
        plan.load(Sharding(0, 2, {r"^a\.": "row"}))
