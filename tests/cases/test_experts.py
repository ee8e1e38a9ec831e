"""Cases C08-C12, C19: experts and fused projections."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import (
    INDEX,
    TM_RULES,
    Arrays,
    assert_same,
    const,
    contents,
    filled,
    iota,
    names_in,
    plan_of,
    specs,
    tm,
    tm_fused,
    to_mlx,
    write,
    write_sharded,
)
from weightloom.engine import (
    Checkpoint,
    Chunk,
    Interleave,
    PlanError,
    Rule,
    Split,
    Transpose,
    WeightConverter,
    build_plan,
    save_plan,
)

EXPERTS = "model.layers.0.mlp.experts"


@pytest.mark.case("C08")
@pytest.mark.parametrize("order", ["text", "shuffled"])
def test_c08_experts_are_stacked_by_number(tmp_path: Path, order: str) -> None:
    """C08: with 12 experts, stacked[i] is expert i, whether the file is in text order or shuffled."""
    names = sorted(f"{EXPERTS}.{i}.down_proj.weight" for i in range(12))
    if order == "shuffled":
        random.Random(8).shuffle(names)
    write(tmp_path / "model.safetensors", {name: const(int(name.split(".")[5]), 8, 4) for name in names})
    stacked = np.array(plan_of(tmp_path, TM_RULES).load()[f"{EXPERTS}.down_proj"])
    assert [float(stacked[i].min()) for i in range(12)] == [float(stacked[i].max()) for i in range(12)]
    assert stacked[:, 0, 0].tolist() == list(range(12))


def by_expert(name: str) -> bool:
    return name.split(".")[5] == "3"


def by_part(name: str) -> bool:
    return "up_proj" in name


@pytest.mark.case("C09")
@pytest.mark.parametrize("second", [by_expert, by_part])
def test_c09_the_experts_of_all_shards_are_counted(tmp_path: Path, second: object) -> None:
    """C09: experts 0-2 in one file and 3 in the other, or gates in one and ups in the other: one full stack."""
    assert callable(second)
    file = tm(4)
    shards = [{n: a for n, a in file.items() if bool(second(n)) is side} for side in (False, True)]
    write_sharded(tmp_path / "in", shards)
    plan = plan_of(tmp_path / "in", TM_RULES, specs(tm_fused(4)))
    assert_same(plan.load(), tm_fused(4))
    plan.save(plan.load(), tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C09")
def test_c09_a_lacking_expert_is_named(tmp_path: Path) -> None:
    """C09: without expert 2 the load fails and names layer 0, `gate_proj`, index 2."""
    write(tmp_path / "model.safetensors", {n: a for n, a in tm(4).items() if ".2." not in n})
    plan = plan_of(tmp_path, TM_RULES, specs(tm_fused(4)))
    with pytest.raises(PlanError) as caught:
        plan.load()
    gate = next(record for record in plan.report.incomplete if "gate_proj" in record.pattern)
    assert gate.group == "model.layers.0.mlp" and gate.numbers == (2,)
    line = next(line for line in str(caught.value).splitlines() if "gate_proj" in line)
    assert "model.layers.0" in line and "index 2" in line


@pytest.mark.case("C10")
def test_c10_experts_one_by_one_and_fused_give_the_same_parameters(tmp_path: Path) -> None:
    """C10: both layouts load bit-equal and each saves back as it was; a name that nothing claims is an error."""
    write(tmp_path / "a" / "model.safetensors", tm(2))
    write(tmp_path / "b" / "model.safetensors", tm_fused(2))
    for side in "ab":
        plan = plan_of(tmp_path / side, TM_RULES, specs(tm_fused(2)))
        loaded = plan.load()
        assert_same(loaded, tm_fused(2))
        plan.save(loaded, tmp_path / f"{side}-out")
        assert contents(tmp_path / f"{side}-out") == contents(tmp_path / side)
    write(tmp_path / "c" / "model.safetensors", {**tm_fused(2), f"{EXPERTS}.gate_up_projx": const(1.0, 1)})
    with pytest.raises(PlanError, match="gate_up_projx"):
        plan_of(tmp_path / "c", TM_RULES, specs(tm_fused(2))).load()


ATTENTION = "model.layers.0.self_attn"
QKV = ["q_proj", "k_proj", "v_proj"]


def qkv_params(rows: tuple[int, ...]) -> Arrays:
    sizes = dict(zip(QKV, rows, strict=True))
    return {
        **{f"{ATTENTION}.{name}.weight": const(0, n, 8) for name, n in sizes.items()},
        **{f"{ATTENTION}.{name}.bias": const(0, n) for name, n in sizes.items()},
    }


def write_qkv(folder: Path) -> Path:
    arrays = {f"{ATTENTION}.qkv_proj.weight": iota(12, 8), f"{ATTENTION}.qkv_proj.bias": iota(12)}
    write(folder / "model.safetensors", arrays)
    return folder


@pytest.mark.case("C11")
def test_c11_a_fused_projection_is_cut_by_head_counts(tmp_path: Path) -> None:
    """C11: q = rows 0-7, k = 8-9, v = 10-11, weight and bias, and back."""
    rules: list[Rule] = [WeightConverter("qkv_proj", QKV, [Split(0)])]
    source = write_qkv(tmp_path / "in")
    plan = plan_of(source, rules, specs(qkv_params((8, 2, 2))))
    loaded = plan.load()
    rows = {"q_proj": slice(0, 8), "k_proj": slice(8, 10), "v_proj": slice(10, 12)}
    weights = {f"{ATTENTION}.{n}.weight": iota(12, 8)[cut] for n, cut in rows.items()}
    assert_same(loaded, {**weights, **{f"{ATTENTION}.{n}.bias": iota(12)[cut] for n, cut in rows.items()}})
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(source)


@pytest.mark.case("C11")
def test_c11_pieces_that_do_not_fit_print_wanted_and_got(tmp_path: Path) -> None:
    """C11: an equal cut into unequal parameters, and sizes that do not add up, fail with both sizes."""
    source = write_qkv(tmp_path)
    equal = plan_of(source, [WeightConverter("qkv_proj", QKV, [Chunk(0)])], specs(qkv_params((8, 2, 2))))
    with pytest.raises(PlanError) as caught:
        equal.load()
    line = next(line for line in str(caught.value).splitlines() if "q_proj.weight" in line)
    assert "[4, 8]" in line and "[8, 8]" in line
    wrong = plan_of(source, [WeightConverter("qkv_proj", QKV, [Split(0)])], specs(qkv_params((8, 2, 4))))
    with pytest.raises(PlanError, match=r"12 rows .* parts of 8, 2, 4.*add up to 12, not 14"):
        wrong.load()


GPT_OSS_RULES: list[Rule] = [
    WeightConverter(
        "experts.gate_up_proj",
        ["experts.gate_proj", "experts.up_proj"],
        [Interleave(-1), Chunk(-1), Transpose(1, 2)],
    ),
    WeightConverter(
        "experts.gate_up_proj_bias",
        ["experts.gate_proj_bias", "experts.up_proj_bias"],
        [Interleave(-1), Chunk(-1)],
    ),
    WeightConverter("experts.down_proj", "experts.down_proj", [Transpose(1, 2)]),
]


@pytest.mark.case("C12")
def test_c12_interleaved_and_transposed_experts(tmp_path: Path) -> None:
    """C12: gate[e] = X[e][:, 0::2]^T, up[e] = X[e][:, 1::2]^T, down[e] = D[e]^T, biases likewise, and back."""
    x, d, b = iota(2, 4, 8), iota(2, 4, 4), filled({"b": (2, 8)})["b"]
    file = {"gate_up_proj": x, "gate_up_proj_bias": b, "down_proj": d, "down_proj_bias": iota(2, 4)}
    write(tmp_path / "in" / "model.safetensors", {f"{EXPERTS}.{n}": array for n, array in file.items()})
    wanted = {
        "gate_proj": x[:, :, 0::2].transpose(0, 2, 1),
        "up_proj": x[:, :, 1::2].transpose(0, 2, 1),
        "gate_proj_bias": b[:, 0::2],
        "up_proj_bias": b[:, 1::2],
        "down_proj": d.transpose(0, 2, 1),
        "down_proj_bias": iota(2, 4),
    }
    params = {f"{EXPERTS}.{n}": array for n, array in wanted.items()}
    plan = plan_of(tmp_path / "in", GPT_OSS_RULES, specs(params))
    loaded = plan.load()
    assert_same(loaded, params)
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C19")
def test_c19_every_entry_applies_the_same_rules(tmp_path: Path) -> None:
    """C19: a fresh model's save loads bit-equal as a directory, an index, a list of files, one file and arrays."""
    params = tm_fused(2)
    target = tmp_path / "out"
    save_plan(TM_RULES, specs(params)).save(to_mlx(params), target, max_shard_bytes=300)
    files = sorted(target.glob("*.safetensors"))
    assert len(files) > 2 and names_in(target) == set(tm(2))
    save_plan(TM_RULES, specs(params)).save(to_mlx(params), tmp_path / "one")
    entries = [
        Checkpoint.open(target),
        Checkpoint.open(target / INDEX),
        Checkpoint.from_files(files),
        Checkpoint.from_files(reversed(files)),
        Checkpoint.open(tmp_path / "one" / "model.safetensors"),
        Checkpoint.from_arrays(tm(2)),
        Checkpoint.from_arrays(to_mlx(tm(2))),
    ]
    for entry in entries:
        assert_same(build_plan(entry, TM_RULES, specs(params)).load(), params)
