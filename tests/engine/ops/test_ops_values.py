"""Stacked experts in block formats: values against tables and ml_dtypes by NumPy, and the source's bytes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.layouts import opened, plan_specs, same_file
from tests.laws.worlds import Tensor, bytes_of
from weightloom.engine import (
    Chunk,
    ConversionOp,
    DequantizeExperts,
    Interleave,
    NotInvertible,
    Plan,
    PlanError,
    RuleError,
    Sharding,
    TensorSpec,
    WeightConverter,
    build_plan,
    save_plan,
)
from weightloom.engine.codings.block_codes import e4m3_values, e8m0_values
from weightloom.engine.dtypes import byte_length
from weightloom.engine.ops.chain import Chain
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.planning.sharding import Kind
from weightloom.engine.reading.read_bytes import parts_read
from weightloom.engine.saving.save import convert
from weightloom.engine.views.moves import Specs

SOURCES = ("w13_weight", "w13_weight_scale", "w13_weight_amax", "w13_weight_outer_scale_denominator")
RULE = WeightConverter(SOURCES, "gate_up_proj", [DequantizeExperts()], optional=SOURCES[1:])
EXPERTS, ROWS, COLUMNS = 3, 4, 64
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def e4m3(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """By arithmetic on the fields of a code, not by a table."""
    exponent, mantissa = (codes >> 3 & 15).astype(np.int32), (codes & 7).astype(np.float32)
    size = np.where(exponent > 0, np.ldexp(1 + mantissa / 8, exponent - 7), np.ldexp(mantissa / 8, -6))
    size = np.where(codes & 0x7F == 0x7F, np.nan, size)
    return np.asarray(np.where(codes & 0x80, -size, size).astype(np.float32))


def to_bf16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Round to the nearest, ties to even, on the bits of finite values."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return np.asarray(((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16))


def codes_of(*shape: int, seed: int, most: int = 255) -> np.ndarray[Any, Any]:
    return np.asarray(np.random.default_rng(seed).integers(0, most, shape, np.uint8, endpoint=True))


@dataclass(frozen=True)
class Stored:
    """Tensors of a block format, and the values that they are."""

    tensors: Mapping[str, Tensor]
    values: np.ndarray[Any, Any]


def nvfp4(label: str = "U8", denominators: tuple[int, ...] = (1,)) -> Stored:
    codes = codes_of(EXPERTS, ROWS, COLUMNS // 2, seed=1)
    scales = codes_of(EXPERTS, ROWS, COLUMNS // 16, seed=2, most=0x7E)
    amax = np.array([3.5, 0.1, 700.0], np.float32)
    below = np.full(denominators, 2688.0, np.float32)
    nibbles = np.stack([codes & 15, codes >> 4], -1).reshape(EXPERTS, ROWS, COLUMNS)
    values = np.where(nibbles & 8, -1, 1).astype(np.float32) * E2M1[nibbles & 7]
    values = values.reshape(EXPERTS, ROWS, -1, 16) * e4m3(scales)[..., None]
    values = values * (amax / below.reshape(-1))[:, None, None, None]
    shape = (EXPERTS, ROWS, COLUMNS // (2 if label == "U8" else 1))
    tensors = (
        Tensor(label, shape, codes.tobytes()),
        Tensor("F8_E4M3", scales.shape, scales.tobytes()),
        Tensor("F32", amax.shape, amax.tobytes()),
        Tensor("F32", below.shape, below.tobytes()),
    )
    return Stored(dict(zip(SOURCES, tensors, strict=True)), values.reshape(EXPERTS, ROWS, COLUMNS))


def mxfp8(label: str = "F8_E8M0") -> Stored:
    codes = codes_of(EXPERTS, ROWS, COLUMNS, seed=3)
    codes[codes & 0x7F == 0x7F] = 1
    scales = codes_of(EXPERTS, ROWS, COLUMNS // 32, seed=4, most=120) + np.uint8(60)
    values = e4m3(codes).reshape(EXPERTS, ROWS, -1, 32) * np.exp2(scales.astype(np.float32) - 127)[..., None]
    tensors = (
        Tensor("F8_E4M3", codes.shape, codes.tobytes()),
        Tensor(label, scales.shape, scales.tobytes()),
    )
    return Stored(dict(zip(SOURCES[:2], tensors, strict=True)), values.reshape(EXPERTS, ROWS, COLUMNS))


STORED = {
    "nvfp4": nvfp4,
    "nvfp4, typed": lambda: nvfp4("F4"),
    "nvfp4, a denominator an expert": lambda: nvfp4(denominators=(3,)),
    "nvfp4, one denominator without dims": lambda: nvfp4(denominators=()),
    "mxfp8": mxfp8,
    "mxfp8, untyped scales": lambda: mxfp8("U8"),
}


@pytest.mark.parametrize("kind", STORED)
def test_values_are_those_of_the_format_and_the_bytes_come_back(tmp_path: Path, kind: str) -> None:
    stored = STORED[kind]()
    with opened(stored.tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [RULE])
        assert plan.invertible
        assert plan.inverse().inverse() == plan
        params = plan.load(threads=1)
        assert bytes_of(params["gate_up_proj"]) == to_bf16(stored.values).tobytes()
        plan.save(params, tmp_path / "target")
    assert same_file(tmp_path)


@pytest.mark.parametrize("kind", ["nvfp4", "mxfp8"])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_the_dtype_is_the_parameter_s_or_the_op_s(tmp_path: Path, kind: str, dtype: str) -> None:
    stored = STORED[kind]()
    params = {"gate_up_proj": TensorSpec(dtype, (EXPERTS, ROWS, COLUMNS))}
    given_it = RULE.replace(operations=(DequantizeExperts(dtype),))
    with opened(stored.tensors, tmp_path) as checkpoint:
        found = [build_plan(checkpoint, [RULE], params).load(), build_plan(checkpoint, [given_it]).load()]
    assert bytes_of(found[0]["gate_up_proj"]) == bytes_of(found[1]["gate_up_proj"])
    if dtype == "F32":
        assert bytes_of(found[0]["gate_up_proj"]) == stored.values.tobytes()


def test_every_code_has_its_value() -> None:
    codes = np.arange(256, dtype=np.uint8)
    assert np.array_equal(np.array(e4m3_values(mx.array(codes))), e4m3(codes), equal_nan=True)
    powers = np.array([*(2.0 ** (code - 127) for code in range(255)), np.nan], np.float32)
    assert np.array_equal(np.array(e8m0_values(mx.array(codes))), powers, equal_nan=True)


def test_every_code_has_the_value_that_torch_gives_it() -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(256, dtype=torch.uint8)
    for values, dtype in ((e4m3_values, torch.float8_e4m3fn), (e8m0_values, torch.float8_e8m0fnu)):
        mine = np.array(values(mx.array(codes.numpy())))
        assert np.array_equal(mine, codes.view(dtype).float().numpy(), equal_nan=True)


def test_gate_and_up_are_taken_apart_after_it(tmp_path: Path) -> None:
    rule = RULE.replace(operations=(DequantizeExperts(), Interleave(1), Chunk(1)), target_patterns=("gate", "up"))
    with pytest.raises(PlanError, match="2 targets"):
        plan_specs({name: each.spec for name, each in mxfp8().tensors.items()}, [rule]).check()
    stored = nvfp4()
    rule = RULE.replace(operations=(DequantizeExperts(), Interleave(1)))
    with opened(stored.tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [rule])
        params = plan.load()
        expected = np.concatenate([stored.values[:, 0::2], stored.values[:, 1::2]], 1)
        assert bytes_of(params["gate_up_proj"]) == to_bf16(expected).tobytes()
        plan.save(params, tmp_path / "target")
    assert same_file(tmp_path)


def test_new_shards_hold_the_source_s_bytes_too(tmp_path: Path) -> None:
    with opened(nvfp4().tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [RULE])
        plan.save(plan.load(), tmp_path / "target", max_shard_bytes=500)
        before = build_plan(checkpoint, []).load()
    from weightloom.engine import Checkpoint

    with Checkpoint.open(tmp_path / "target") as written:
        after = build_plan(written, []).load()
    assert {name: bytes_of(each) for name, each in after.items()} == {n: bytes_of(each) for n, each in before.items()}


@pytest.mark.parametrize("change", ["one bit", "another type", "sign of zero"])
def test_a_changed_parameter_refuses_the_save_by_name(tmp_path: Path, change: str) -> None:
    stored = nvfp4()
    with opened(stored.tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [RULE])
        params = plan.load()
        now = params["gate_up_proj"]
        params["gate_up_proj"] = {
            "one bit": (now.view(mx.uint16) ^ (mx.arange(now.size).reshape(now.shape) == 7)).view(mx.bfloat16),
            "another type": now.astype(mx.float32),
            "sign of zero": mx.where(now == 0, -now, now),
        }[change]
        with pytest.raises(PlanError, match="gate_up_proj") as seen:
            plan.save(params, tmp_path / "target")
        assert seen.value.tensor == "gate_up_proj"
        assert change == "another type" or isinstance(seen.value, NotInvertible)
    assert not (tmp_path / "target").exists()


def test_experts_in_floats_go_through(tmp_path: Path) -> None:
    values = to_bf16(nvfp4().values)
    tensor = Tensor("BF16", values.shape, values.tobytes())
    with opened({"w13_weight": tensor}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [RULE])
        params = plan.load()
        assert bytes_of(params["gate_up_proj"]) == tensor.data
        params["gate_up_proj"] = params["gate_up_proj"] * 1
        plan.save(params, tmp_path / "target")
    assert same_file(tmp_path)


def test_a_model_that_was_never_loaded_is_written_in_floats() -> None:
    plan = save_plan([RULE], {"gate_up_proj": TensorSpec("BF16", (2, 4, 32))})
    assert {name: spec.logical() for name, spec in plan.sources.items()} == {
        "w13_weight": TensorSpec("BF16", (2, 4, 32))
    }


def specs_of(stored: Stored, **changed: TensorSpec) -> dict[str, TensorSpec]:
    return {name: tensor.spec for name, tensor in stored.tensors.items()} | changed


@pytest.mark.parametrize(
    ("specs", "seen"),
    [
        (specs_of(nvfp4(), w13_weight=TensorSpec("I8", (3, 4, 32))), "the weight"),
        (specs_of(nvfp4(), w13_weight=TensorSpec("U8", (3, 4, 12))), "the weight"),
        (specs_of(nvfp4(), w13_weight=TensorSpec("U8", (12, 32))), "the weight"),
        (specs_of(nvfp4(), w13_weight=TensorSpec("U8", ())), "the weight"),
        (specs_of(nvfp4(), w13_weight_scale=TensorSpec("F8_E4M3", (3, 4, 2))), "the scale"),
        (specs_of(nvfp4(), w13_weight_amax=TensorSpec("F32", (2,))), "the amax"),
        (specs_of(nvfp4(), w13_weight_outer_scale_denominator=TensorSpec("I32", (1,))), "the denominator"),
        (specs_of(mxfp8(), w13_weight=TensorSpec("F8_E5M2", (3, 4, 64))), "the weight"),
        (specs_of(mxfp8(), w13_weight_scale=TensorSpec("F8_E8M0", (3, 4, 4))), "the scale"),
        (specs_of(mxfp8(), w13_weight_amax=TensorSpec("F32", (3,))), "3 tensors"),
    ],
)
def test_what_does_not_belong_together_is_refused(specs: dict[str, TensorSpec], seen: str) -> None:
    with pytest.raises(PlanError, match=seen):
        plan_specs(specs, [RULE]).check()


def test_another_dtype_is_refused_where_it_is_written() -> None:
    with pytest.raises(RuleError):
        DequantizeExperts("F64")


@pytest.mark.parametrize(("size", "kind"), [(2, "column"), (2, "row"), (2, "packed"), (3, "expert"), (8, "row")])
@pytest.mark.parametrize("stored", ["nvfp4", "mxfp8"])
def test_a_rank_has_its_part_of_the_whole(tmp_path: Path, stored: str, size: int, kind: Kind) -> None:
    """Read as a part where blocks stay whole (among 8 ranks they do not), else computed whole and cut."""
    with opened({"nvfp4": nvfp4, "mxfp8": mxfp8}[stored]().tensors, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [RULE])
        shardings = [Sharding(rank, size, {"gate_up_proj": kind}) for rank in range(size)]
        whole = plan.load()["gate_up_proj"]
        parts = [plan.load(sharding)["gate_up_proj"] for sharding in shardings]
        read = sum(each.read for each in parts_read(plan, shardings[0]))
        all_read = sum(each.read for each in parts_read(plan, Sharding(0, size, {})))
    dim = {"row": 2, "expert": 0}.get(kind, 1)
    if kind == "packed":
        halves = [mx.split(part, 2, axis=dim) for part in parts]
        parts = [mx.concatenate(half, axis=dim) for half in zip(*halves, strict=True)]
    assert bytes_of(mx.concatenate(parts, axis=dim)) == bytes_of(whole)
    assert (read < 0.9 * all_read) == (kind in ("column", "expert"))


def test_codes_are_computed_and_cast_in_part(tmp_path: Path) -> None:
    with opened(nvfp4().tensors, tmp_path) as checkpoint:
        plan = with_dtype(build_plan(checkpoint, [RULE]), "F32")
        whole = plan.load()["gate_up_proj"]
        part = plan.load(Sharding(1, 2, {"gate_up_proj": "column"}))["gate_up_proj"]
    assert bytes_of(part) == bytes_of(mx.contiguous(whole[:, ROWS // 2 :]))


def test_no_experts_are_no_values(tmp_path: Path) -> None:
    tensors = {
        "w13_weight": Tensor("F8_E4M3", (0, 4, 32), b""),
        "w13_weight_scale": Tensor("F8_E8M0", (0, 4, 1), b""),
    }
    with opened(tensors, tmp_path) as checkpoint:
        found = build_plan(checkpoint, [RULE]).load()["gate_up_proj"]
    assert (found.shape, found.dtype) == ((0, 4, 32), mx.bfloat16)


def test_from_one_layout_to_another_the_codes_stay_codes(tmp_path: Path) -> None:
    """Each layout holds the same four tensors, under other names: nothing is computed."""
    other = WeightConverter(["a", "b", "c", "d"], "gate_up_proj", [DequantizeExperts()], optional=["b", "c", "d"])
    stored = nvfp4()
    names = dict(zip(SOURCES, "abcd", strict=True))
    with opened(stored.tensors, tmp_path) as checkpoint:
        first = build_plan(checkpoint, [RULE])
        second = plan_specs({names[name]: each.spec for name, each in stored.tensors.items()}, [other])
        both = first.then(second.inverse())
        assert all(group.program.is_structural for group in both.groups)
        convert(both, tmp_path / "target")
    from weightloom.engine import Checkpoint

    with Checkpoint.open(tmp_path / "target") as written:
        after = build_plan(written, []).load()
    assert {name: bytes_of(each) for name, each in after.items()} == {
        names[name]: each.data for name, each in stored.tensors.items()
    }


def test_floats_do_not_become_codes(tmp_path: Path) -> None:
    stored = nvfp4()
    values = to_bf16(stored.values)
    with opened({"gate_up_proj": Tensor("BF16", values.shape, values.tobytes())}, tmp_path) as checkpoint:
        first = build_plan(checkpoint, [])
        second = plan_specs(specs_of(stored), [RULE])
        with pytest.raises(NotInvertible, match="does not hold") as seen:
            convert(first.then(second.inverse()), tmp_path / "target")
    assert seen.value.tensor in SOURCES
    assert not (tmp_path / "target").exists()


@dataclass(frozen=True)
class Doubled:
    """A third party's step: twice the values, rounded, without an inverse."""

    at: int
    arity: int = 1

    def infer(self, specs: Specs) -> Specs:
        return specs

    def apply(self, arrays: tuple[mx.array, ...]) -> tuple[mx.array, ...]:
        return (arrays[0] * 2,)

    def inverse(self) -> Doubled:
        raise NotInvertible("doubling overflows")


@dataclass(frozen=True)
class Double(ConversionOp):
    def lower(self, chain: Chain) -> None:
        chain.value(Doubled(chain.slot(0, 0)), 0, 0)


def doubling(fidelity: str, plan_of: Mapping[str, Tensor], folder: Path) -> tuple[Plan, dict[str, mx.array]]:
    rule = WeightConverter("w", ["a", "b"], [Double(), Chunk(0)], fidelity=fidelity)
    with opened(plan_of, folder) as checkpoint:
        plan = build_plan(checkpoint, [rule])
        return plan, plan.load()


@given(st.integers(0, 1 << 20))
def test_an_op_without_an_inverse_keeps_under_a_rule_that_keeps(seed: int) -> None:
    from tempfile import TemporaryDirectory

    data = np.random.default_rng(seed).integers(0, 256, byte_length("F16", (4, 3)) or 0, np.uint8).tobytes()
    with TemporaryDirectory() as place:
        folder = Path(place)
        rule = WeightConverter("w", ["a", "b"], [Double(), Chunk(0)], fidelity="keeps")
        with opened({"w": Tensor("F16", (4, 3), data)}, folder) as checkpoint:
            plan = build_plan(checkpoint, [rule])
            assert plan.invertible
            params = plan.load(threads=1)
            plan.save(params, folder / "target")
            assert same_file(folder)
            params["b"] = mx.zeros((2, 3), mx.float16)
            with pytest.raises(NotInvertible, match="b is not as it was loaded"):
                plan.save(params, folder / "other")


def test_under_an_exact_rule_it_is_lossy(tmp_path: Path) -> None:
    plan, _ = doubling("exact", {"w": Tensor("F16", (4, 3), bytes(24))}, tmp_path)
    assert [record.why for record in plan.report.lossy] == ["doubling overflows"]
    with pytest.raises(NotInvertible, match="doubling overflows"):
        plan.inverse()
