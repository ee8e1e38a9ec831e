"""Quantized weights among ranks: cut between two groups, the scales alike, or refused by layer and group (C76)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.fixtures import plan_of, write
from tests.laws.sources import in_memory, of_array
from tests.laws.worlds import Tensor, bytes_of
from weightloom.engine import PlanError, RuleSet, Sharding, TensorSpec, WeightConverter
from weightloom.engine.codings.fp8_blocks import Fp8Blocks
from weightloom.engine.ops.coded import DequantizeCodes
from weightloom.engine.planning.blocks_of_scales import Blocks, blocks_along, scales_of, weight_of
from weightloom.engine.planning.composing.unpacking import Packed, plan_unpacked
from weightloom.engine.planning.sharding import Kind
from weightloom.engine.reading.read_bytes import parts_read

LAYER = "model.layers.0.self_attn.o_proj"
ROWS: dict[str, Kind] = {r"o_proj\.(weight|scales|biases|weight_scale_inv)$": "row"}


def packed(columns: int, group: int, bits: int) -> dict[str, np.ndarray[Any, Any]]:
    chance = np.random.default_rng(3)
    weight = chance.integers(0, 2**32, (8, columns * bits // 32), dtype=np.uint32)
    scales, biases = (chance.standard_normal((8, columns // group), dtype=np.float32) for _ in range(2))
    return {f"{LAYER}.weight": weight, f"{LAYER}.scales": scales, f"{LAYER}.biases": biases}


@pytest.mark.case("C76")
def test_a_cut_inside_a_group_is_refused_by_layer_and_group(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", packed(96, 32, 4))
    for rank in range(2):
        with pytest.raises(PlanError, match=rf"{LAYER}.*at 6 along dim 1 lies inside group 1, 4 to 8") as caught:
            plan_of(tmp_path).load(Sharding(rank, 2, ROWS))
        assert caught.value.tensor == f"{LAYER}.weight" and caught.value.hint


@pytest.mark.case("C76")
@pytest.mark.parametrize(("columns", "group", "bits", "size"), [(512, 128, 2, 2), (96, 32, 4, 3), (192, 32, 3, 3)])
def test_a_row_cut_between_groups(tmp_path: Path, columns: int, group: int, bits: int, size: int) -> None:
    """Each rank multiplies its columns with its part of the weight; the sum is the whole product."""
    arrays = packed(columns, group, bits)
    write(tmp_path / "model.safetensors", arrays)
    x = mx.array(np.random.default_rng(4).standard_normal((3, columns), dtype=np.float32))
    whole = mx.quantized_matmul(x, *map(mx.array, arrays.values()), group_size=group, bits=bits)
    found = [plan_of(tmp_path).load(Sharding(rank, size, ROWS)) for rank in range(size)]
    assert found[0][f"{LAYER}.weight"].shape == (8, columns * bits // 32 // size)
    assert found[0][f"{LAYER}.scales"].shape == (8, columns // group // size)
    parts = zip(mx.split(x, size, axis=1), found, strict=True)
    total = sum(
        mx.quantized_matmul(part, *(each[name] for name in arrays), group_size=group, bits=bits) for part, each in parts
    )
    assert isinstance(total, mx.array) and np.allclose(np.asarray(total), np.asarray(whole), atol=1e-4)


def fp8(rows: int, columns: int, block: int) -> dict[str, TensorSpec]:
    scales = (-(-rows // block), -(-columns // block))
    return {
        f"{LAYER}.weight": TensorSpec("F8_E4M3", (rows, columns)),
        f"{LAYER}.weight_scale_inv": TensorSpec("F32", scales),
    }


def rows_of(params: dict[str, TensorSpec], rank: int, kind: Kind = "column") -> dict[str, tuple[tuple[int, int], ...]]:
    sharding = Sharding(rank, 2, {"o_proj": kind})
    slices = {name.rpartition(".")[2]: sharding.slice_of(name, params) for name in params}
    return {name: rows.ranges for name, rows in slices.items() if rows is not None}


def test_block_scales_are_cut_with_their_blocks() -> None:
    assert rows_of(fp8(512, 256, 128), 1) == {"weight": ((256, 512),), "weight_scale_inv": ((2, 4),)}
    assert rows_of(fp8(512, 256, 128), 0, "packed") == {
        "weight": ((0, 128), (256, 384)),
        "weight_scale_inv": ((0, 1), (2, 3)),
    }


def test_a_partial_last_block_stays_whole() -> None:
    """320 rows in blocks of 128: the last block has 64, and does not make the others shorter."""
    params = {"w": TensorSpec("F8_E4M3", (5, 4)), "w_scale_inv": TensorSpec("F32", (2, 1))}
    assert blocks_along(0, params["w"], params["w_scale_inv"]) == Blocks(4, 2)
    with pytest.raises(PlanError, match=r"at 160 along dim 0 lies inside group 1, 128 to 256"):
        rows_of(fp8(320, 256, 128), 0)


def test_one_scale_for_all_rows_goes_to_every_rank() -> None:
    """A cut through the one block there is: both parts have its scale."""
    assert [rows_of(fp8(64, 256, 128), rank) for rank in range(2)] == [{"weight": ((0, 32),)}, {"weight": ((32, 64),)}]


def test_a_block_that_straddles_a_cut_is_refused_on_every_rank() -> None:
    for rank in range(2):
        with pytest.raises(PlanError, match="lies inside group 1"):
            rows_of(fp8(384, 256, 128), rank)


def test_a_weight_and_its_scales_are_cut_alike() -> None:
    params = fp8(512, 256, 128)
    kinds: dict[str, Kind] = {r"o_proj\.weight$": "column", r"o_proj\.weight_scale_inv$": "replicate"}
    for name in params:
        with pytest.raises(PlanError, match=r"is to be cut by column and .* by replicate"):
            Sharding(0, 2, kinds).slice_of(name, params)


def test_scales_that_no_pattern_is_about_are_cut_as_their_weight_is() -> None:
    params = fp8(512, 256, 128)
    alone, both = (Sharding(1, 2, {pattern: "column"}) for pattern in (r"o_proj\.weight$", r"o_proj\."))
    assert [alone.slice_of(name, params) for name in params] == [both.slice_of(name, params) for name in params]
    assert alone.slice_of(sorted(params)[-1], params) is not None


def test_a_parameter_that_is_not_there() -> None:
    with pytest.raises(PlanError, match="no parameter o_proj") as caught:
        Sharding(0, 2, {"o_proj": "row"}).slice_of("o_proj", {})
    assert caught.value.tensor == "o_proj"


def test_what_belongs_together() -> None:
    codes, scale = TensorSpec("U32", (4, 8, 4)), TensorSpec("F32", (4, 8, 1))
    params = {"e.up": codes, "e.up_scales": scale, "e.up_biases": scale, "a.bias": scale, "a.weight": scale}
    assert list(scales_of("e.up", params)) == ["e.up_scales", "e.up_biases"]
    assert [weight_of(name, params) for name in params] == ["e.up"] * 3 + ["a.bias", "a.weight"]


@given(st.integers(1, 4), st.sampled_from((4, 8, 16)), st.integers(1, 9), st.integers(0, 7))
def test_blocks_from_shapes(size: int, block: int, count: int, short: int) -> None:
    """Whatever is left of the last block, the others are as long as they were; a torn one is always seen."""
    total = count * block - min(short, block // 2 - 1) if count > 2 else count * block
    weight, scales = TensorSpec("F8_E4M3", (total, 2)), TensorSpec("F32", (count, 1))
    found = blocks_along(0, weight, scales)
    assert found.count == count
    if count > 1 and total > count:
        assert found.size == block
    rows = (0, total // size)
    covering = found.covering(rows)
    assert covering[0] == 0 and covering[1] * found.size >= rows[1] > (covering[1] - 1) * found.size


def test_scales_that_no_blocks_give() -> None:
    with pytest.raises(PlanError, match="scales along dim 0"):
        blocks_along(0, TensorSpec("F8_E4M3", (100, 2)), TensorSpec("F32", (30, 1)))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("kind", ["column", "row", "packed"])
def test_codes_that_become_floats_may_be_cut_anywhere(tmp_path: Path, kind: Kind, size: int) -> None:
    """Blocks that straddle the cut have their scale on both sides; the numbers are those of the whole."""
    rows, columns, block = 768, 600, 128
    chance = np.random.default_rng(6)
    codes = Tensor("F8_E4M3", (rows, columns), chance.integers(0, 120, rows * columns, np.uint8).tobytes())
    scales = of_array(chance.standard_normal((6, 5), dtype=np.float32), "F32")
    tensors = {f"{LAYER}.weight": codes, f"{LAYER}.weight_scale_inv": scales}
    names = tuple(tensors)
    with in_memory(tensors, tmp_path) as checkpoint:
        decoded = WeightConverter(names, f"{LAYER}.weight", [DequantizeCodes(Fp8Blocks((block, block)))])
        plan = plan_unpacked(checkpoint, [Packed(decoded, names, (f"{LAYER}.weight",))], RuleSet(()))
        whole = plan.load()[f"{LAYER}.weight"]
        shardings = [Sharding(rank, size, {"o_proj": kind}) for rank in range(size)]
        parts = [plan.load(sharding)[f"{LAYER}.weight"] for sharding in shardings]
        (read,) = parts_read(plan, shardings[0])
    dim = 1 if kind == "row" else 0
    if kind == "packed":
        parts = [half for pair in zip(*(mx.split(part, 2, axis=0) for part in parts), strict=True) for half in pair]
    assert bytes_of(mx.concatenate(parts, axis=dim)) == bytes_of(whole)
    assert read.read >= read.needed
