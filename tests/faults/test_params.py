"""What a save may be given, and that every dtype and every odd name goes through."""

from __future__ import annotations

import json
import random
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import (
    INDEX,
    TM_RULES,
    assert_same,
    const,
    contents,
    iota,
    names_in,
    plan_of,
    specs,
    tm,
    tm_fused,
    to_mlx,
    write,
)
from weightloom.engine import (
    Checkpoint,
    Concatenate,
    MergeModulelist,
    PlanError,
    TensorSpec,
    WeightConverter,
    WeightRenaming,
    build_plan,
    save_plan,
)
from weightloom.engine.carrier import spec_of
from weightloom.engine.dtypes import DTYPES, byte_length

FUSED = "model.layers.0.mlp.experts.gate_up_proj"
DOWN = "model.layers.0.mlp.experts.down_proj"


def write_raw(folder: Path, tensors: dict[str, tuple[str, list[int]]], seed: int = 0) -> Path:
    """Random bytes under any dtype."""
    chance, header, data = random.Random(seed), {}, b""
    for name, (dtype, shape) in tensors.items():
        length = byte_length(dtype, tuple(shape))
        assert length is not None
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + length]}
        data += bytes(chance.randrange(2) for _ in range(length)) if dtype == "BOOL" else chance.randbytes(length)
    text = json.dumps(header, ensure_ascii=False).encode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder


def loaded_tm(tmp_path: Path) -> tuple[object, dict[str, mx.array]]:
    write(tmp_path / "in" / "model.safetensors", tm(2))
    plan = plan_of(tmp_path / "in", TM_RULES, specs(tm_fused(2)))
    return plan, plan.load()


WRONG = {
    "missing": (lambda p: {FUSED: p[FUSED]}, "lacking", DOWN),
    "extra": (lambda p: {**p, "more": mx.zeros(2)}, "no place for", "more"),
    "wrong shape": (lambda p: {**p, DOWN: p[DOWN].reshape(2, 4, 8)}, r"F32 \[2, 4, 8\]", DOWN),
    "wrong dtype": (lambda p: {**p, DOWN: p[DOWN].astype(mx.int32)}, r"I32 \[2, 8, 4\]", DOWN),
    "numpy": (lambda p: {**p, DOWN: np.array(p[DOWN])}, r"numpy\.ndarray", DOWN),
    "nothing": (lambda p: {}, "lacking", DOWN),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameters_are_refused_by_name(tmp_path: Path, case: str) -> None:
    change, message, name = WRONG[case]
    plan, loaded = loaded_tm(tmp_path)
    for chosen in (plan, save_plan(TM_RULES, specs(tm_fused(2)))):
        with pytest.raises(PlanError, match=message) as caught:
            chosen.save(change(loaded), tmp_path / "out")  # type: ignore[attr-defined]
        assert caught.value.tensor == name and caught.value.expected
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_a_float_that_became_another_is_saved_as_that(tmp_path: Path, dtype: mx.Dtype) -> None:
    """The header is made anew in the old order; what did not change keeps its bytes."""
    plan, loaded = loaded_tm(tmp_path)
    loaded[FUSED] = loaded[FUSED].astype(dtype)
    plan.save(loaded, tmp_path / "out")  # type: ignore[attr-defined]
    before, after = Checkpoint.open(tmp_path / "in"), Checkpoint.open(tmp_path / "out")
    assert list(after.tensors) == list(before.tensors)
    label = spec_of(loaded[FUSED]).dtype
    changed = {name for name in before.tensors if "down" not in name}
    assert {name: spec.dtype for name, spec in after.tensors.items()} == {
        name: label if name in changed else "F32" for name in before.tensors
    }
    again = build_plan(after, TM_RULES, specs(tm_fused(2))).load()
    assert mx.array_equal(again[FUSED], loaded[FUSED]) and again[FUSED].dtype == dtype
    assert np.array(again[DOWN]).tobytes() == tm_fused(2)[DOWN].tobytes()


def test_parts_of_one_tensor_must_agree_on_a_dtype(tmp_path: Path) -> None:
    rule = WeightConverter("qkv.weight", ["q.weight", "k.weight"], [Concatenate(0).inverse()])
    write(tmp_path / "in" / "model.safetensors", {"qkv.weight": iota(4, 2)})
    plan = plan_of(tmp_path / "in", [rule])
    loaded = plan.load()
    half = {name: array.astype(mx.float16) for name, array in loaded.items()}
    with pytest.raises(PlanError, match=r"q\.weight F16, k\.weight F32"):
        plan.save({**loaded, "q.weight": half["q.weight"]}, tmp_path / "out")
    plan.save(half, tmp_path / "out")
    assert Checkpoint.open(tmp_path / "out").tensors["qkv.weight"].dtype == "F16"


def test_arrays_of_every_kind_are_written_row_major(tmp_path: Path) -> None:
    """A lazy expression, a transposed view, a broadcast, a strided slice, a scalar, an empty one."""
    base = iota(4, 6)
    arrays = {
        "lazy": mx.array(base) * 2 + 1,
        "transposed": mx.array(base).T,
        "broadcast": mx.broadcast_to(mx.array(base[:1]), (3, 6)),
        "strided": mx.array(base)[::2, ::-1],
        "scalar": mx.array(2.5),
        "empty": mx.zeros((0, 3)),
        "hollow": mx.zeros((3, 0, 2), mx.bfloat16),
        "bool": mx.array([True, False]),
        "complex": mx.array([1 + 2j]),
    }
    plan = save_plan([], {name: spec_of(array) for name, array in arrays.items()})
    plan.save(arrays, tmp_path / "out")
    again = plan_of(tmp_path / "out").load()
    assert {name: (a.shape, a.dtype) for name, a in again.items()} == {n: (a.shape, a.dtype) for n, a in arrays.items()}
    assert all(mx.array_equal(again[name], array) for name, array in arrays.items())
    assert np.array(again["transposed"]).tobytes() == np.ascontiguousarray(base.T).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_saved_byte_for_byte(tmp_path: Path, dtype: str) -> None:
    """A matrix, a vector, an empty tensor and (where a byte can hold one) a scalar."""
    tensors: dict[str, tuple[str, list[int]]] = {"m": (dtype, [3, 8]), "v": (dtype, [16]), "e": (dtype, [0, 8])}
    if DTYPES[dtype].bits >= 8:
        tensors["s"] = (dtype, [])
    write_raw(tmp_path / "in", tensors)
    plan = plan_of(tmp_path / "in", [WeightRenaming("^m$", "w"), WeightRenaming("^v$", "model.v")])
    loaded = plan.load()
    raw = (tmp_path / "in" / "model.safetensors").read_bytes()
    spec = Checkpoint.open(tmp_path / "in").tensors["m"]
    assert spec.offset is not None
    assert bytes(memoryview(loaded["w"].view(mx.uint8)).cast("B")) == raw[spec.offset : spec.offset + spec.nbytes]
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")
    plan.save(loaded, tmp_path / "new", max_shard_bytes=40)
    with Checkpoint.open(tmp_path / "new") as checkpoint:
        assert {n: (s.dtype, list(s.shape)) for n, s in checkpoint.tensors.items()} == tensors
    fresh = save_plan([], plan.params)
    fresh.save(loaded, tmp_path / "fresh")
    with Checkpoint.open(tmp_path / "fresh") as checkpoint:
        assert {s.dtype for s in checkpoint.tensors.values()} == {dtype}


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F8_E4M3", "F8_E5M2", "F64"])
def test_experts_of_a_carried_dtype_are_stacked(tmp_path: Path, dtype: str) -> None:
    """Bytes of gate and up rows, expert after expert; and back byte for byte."""
    tensors = {f"experts.{i}.{part}_proj.weight": (dtype, [4, 8]) for i in range(3) for part in ("up", "gate")}
    write_raw(tmp_path / "in", tensors)
    rule = WeightConverter(
        ["experts.*.gate_proj.weight", "experts.*.up_proj.weight"],
        "experts.gate_up_proj",
        [MergeModulelist(0), Concatenate(1)],
    )
    plan = plan_of(tmp_path / "in", [rule])
    loaded = plan.load()
    assert plan.params["experts.gate_up_proj"].logical() == TensorSpec(dtype, (3, 8, 8))
    raw = (tmp_path / "in" / "model.safetensors").read_bytes()
    places = Checkpoint.open(tmp_path / "in").tensors

    def data(name: str) -> bytes:
        offset = places[name].offset
        assert offset is not None
        return raw[offset : offset + places[name].nbytes]

    wanted = b"".join(data(f"experts.{i}.{part}_proj.weight") for i in range(3) for part in ("gate", "up"))
    assert bytes(memoryview(loaded["experts.gate_up_proj"]).cast("B")) == wanted
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


LONG = ["x" * 20_000, "n" + "7" * 6000]
NAMES = ["a.é.ü", "\u0664.\u0663", "𝕏.weight", "...", ".", "²", "%s %d", " ", "a b\tc", "null", *LONG]


def test_odd_names_go_through(tmp_path: Path) -> None:
    params = {name: const(n, 2) for n, name in enumerate(NAMES)}
    plan = save_plan([WeightRenaming("zzz", "yyy")], specs(params))
    plan.save(to_mlx(params), tmp_path / "out")
    again = plan_of(tmp_path / "out", [WeightRenaming("zzz", "yyy")], specs(params))
    loaded = again.load()
    assert_same(loaded, params)
    again.save(loaded, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


@pytest.mark.parametrize("number", ["9999999999", "7" * 6000, "007", "\u0664"])
def test_an_expert_number_beyond_reason_is_a_misfit(number: str) -> None:
    """Neither memory nor time is spent on the experts in between."""
    names = {f"experts.{n}.w": TensorSpec("F32", (2,)) for n in ("0", "1", number)}
    rule = WeightConverter("experts.*.w", "experts.w", [MergeModulelist(0)])
    plan = build_plan(Checkpoint.from_specs(names), [rule], {"experts.w": TensorSpec("F32", (3, 2))})
    assert not plan.ok()
    assert len(str(plan.report)) < 20_000 and plan.to_json()


@pytest.mark.thorough
def test_a_hundred_thousand_tensors() -> None:
    spec = TensorSpec("BF16", (4, 4))
    names = {
        f"model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight": spec
        for layer in range(60)
        for expert in range(556)
        for part in ("gate", "up", "down")
    }
    assert len(names) > 100_000
    plan = build_plan(Checkpoint.from_specs(names), TM_RULES)
    plan.check()
    assert len(plan.params) == 120
    assert plan.params["model.layers.59.mlp.experts.gate_up_proj"].shape == (556, 8, 4)
    assert plan.inverse().inverse() == plan


@pytest.mark.parametrize("limit", [1, 100, 256, 1 << 20])
def test_shards_of_a_given_size(tmp_path: Path, limit: int) -> None:
    plan, loaded = loaded_tm(tmp_path)
    written = plan.save(loaded, tmp_path / "out", max_shard_bytes=limit)  # type: ignore[attr-defined]
    shards = [path for path in written if path.name != INDEX]
    for path in shards:
        with Checkpoint.open(path) as shard:
            assert shard.nbytes <= limit or len(shard.tensors) == 1
    assert (tmp_path / "out" / INDEX).exists() == (len(shards) > 1)
    assert_same(plan_of(tmp_path / "out", TM_RULES, specs(tm_fused(2))).load(), tm_fused(2))
    assert names_in(tmp_path / "out") == set(tm(2))
