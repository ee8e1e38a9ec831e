"""Cases C04, C08-C12, C15, C19 and C20 on the rules that ship; C16-C18 are in test_recorded_layout."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cases.fixtures import (
    INDEX,
    Arrays,
    assert_same,
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
from tests.cases.shipped import EXPERTS, MIXTRAL, QWEN2_MOE, there_and_back, written_fresh
from tests.rules.checkpoints import model_rules
from weightloom.engine import Checkpoint, PlanError, build_plan, save_plan
from weightloom.rules import load_rules


@pytest.mark.case("C04")
def test_c04_a_scale_is_not_cut_with_its_weight(tmp_path: Path) -> None:
    """C04: a fused `gate_up_proj` is written expert by expert; `gate_up_proj_scale_inv` goes as it is, and reloads."""
    params = tm_fused(2) | filled({f"{EXPERTS}.gate_up_proj_scale_inv": (2, 1, 1)})
    assert written_fresh(QWEN2_MOE, params, tmp_path) == {*tm(2), f"{EXPERTS}.gate_up_proj_scale_inv"}
    assert_same(plan_of(tmp_path, QWEN2_MOE, specs(params)).load(), params)


@pytest.mark.case("C08")
@pytest.mark.parametrize("order", ["text", "shuffled"])
def test_c08_experts_are_stacked_by_number(tmp_path: Path, order: str) -> None:
    """C08: twelve experts of qwen2_moe, the tenth before the second in the file."""
    file = tm(12)
    names = sorted(file)
    if order == "shuffled":
        random.Random(8).shuffle(names)
    there_and_back(tmp_path, QWEN2_MOE, {name: file[name] for name in names}, tm_fused(12))


@pytest.mark.case("C09")
@pytest.mark.parametrize("second", ["3", "up_proj"])
def test_c09_the_experts_of_all_shards_are_counted(tmp_path: Path, second: str) -> None:
    """C09: one expert, or all ups, in a file of their own; without expert 2 the error names it."""
    file = tm(4)
    shards = [{n: a for n, a in file.items() if (f".{second}." in n) is side} for side in (False, True)]
    write_sharded(tmp_path / "in", shards)
    assert_same(plan_of(tmp_path / "in", QWEN2_MOE, specs(tm_fused(4))).load(), tm_fused(4))
    lacking = {n: array.shape for n, array in file.items() if ".2." not in n}
    with pytest.raises(PlanError, match=r"model\.layers\.0.*gate_proj.*index 2"):
        build_plan(Checkpoint.from_specs(specs(lacking)), QWEN2_MOE, specs(tm_fused(4))).check()


@pytest.mark.case("C10")
def test_c10_experts_one_by_one_and_fused_give_the_same_parameters(tmp_path: Path) -> None:
    """C10: both layouts of qwen2_moe load bit-equal and save back; a name that nothing claims is an error."""
    for side, file in (("a", tm(2)), ("b", tm_fused(2))):
        there_and_back(tmp_path / side, QWEN2_MOE, file, tm_fused(2))
    stray = {**specs(tm_fused(2)), **specs({f"{EXPERTS}.gate_up_projx": (1,)})}
    with pytest.raises(PlanError, match="gate_up_projx"):
        build_plan(Checkpoint.from_specs(stray), QWEN2_MOE, specs(tm_fused(2))).check()


@pytest.mark.case("C11")
def test_c11_a_fused_projection_is_cut_by_head_counts(tmp_path: Path) -> None:
    """C11: Sarvam's `query_key_value`, 4 heads and 1 of keys: rows 0-7, 8-9, 10-11; wrong sizes print both."""
    rules = model_rules(("", "SarvamMoeForCausalLM", "sarvam_moe"), ("model", "SarvamMoeModel", "sarvam_moe"))
    published, attention = "model.layers.0.attention.query_key_value", "model.layers.0.self_attn"
    file = {f"{published}.weight": iota(12, 8), f"{published}.bias": iota(12)}
    rows = {"q": slice(0, 8), "k": slice(8, 10), "v": slice(10, 12)}
    params = {
        f"{attention}.{part}_proj.{end}": file[f"{published}.{end}"][cut]
        for part, cut in rows.items()
        for end in ("weight", "bias")
    }
    there_and_back(tmp_path, rules, file, params)
    wrong = {name: array.shape if "v_proj" not in name else (4, *array.shape[1:]) for name, array in params.items()}
    with pytest.raises(PlanError, match=r"12 rows .* parts of 8, 2, 4.*add up to 12, not 14"):
        plan_of(tmp_path / "in", rules, specs(wrong)).check()


@pytest.mark.case("C12")
def test_c12_interleaved_and_transposed_experts(tmp_path: Path) -> None:
    """C12: gpt-oss in floats, square ones too, in mlx-lm's form: X[:, 0::2]^T, X[:, 1::2]^T, D^T, and back."""
    x, d = iota(2, 4, 8), iota(2, 4, 4)
    gate_up, down = filled({"b": (2, 8)})["b"], iota(2, 4)
    file = {
        f"{EXPERTS}.gate_up_proj": x,
        f"{EXPERTS}.gate_up_proj_bias": gate_up,
        f"{EXPERTS}.down_proj": d,
        f"{EXPERTS}.down_proj_bias": down,
    }
    wanted = {
        f"{EXPERTS}.gate_proj.weight": x[:, :, 0::2].transpose(0, 2, 1),
        f"{EXPERTS}.up_proj.weight": x[:, :, 1::2].transpose(0, 2, 1),
        f"{EXPERTS}.down_proj.weight": d.transpose(0, 2, 1),
        f"{EXPERTS}.gate_proj.bias": gate_up[:, 0::2],
        f"{EXPERTS}.up_proj.bias": gate_up[:, 1::2],
        f"{EXPERTS}.down_proj.bias": down,
    }
    write(tmp_path / "in" / "model.safetensors", file)
    first = plan_of(tmp_path / "in", load_rules("gpt_oss"))
    plan = first.then(save_plan(load_rules("gpt_oss", "mlx"), first.params).inverse())
    loaded = plan.load()
    assert_same(loaded, wanted)
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C15")
@pytest.mark.parametrize("depth", [2, 62])
def test_c15_the_extra_layer_is_told_by_the_models_depth(tmp_path: Path, depth: int) -> None:
    """C15: of DeepSeek-V3, index >= num_hidden_layers is dropped and said so; layer 61 of 62 is an ordinary one."""
    rules = model_rules(("", "DeepseekV3ForCausalLM", "deepseek_v3"), ("model", "DeepseekV3Model", "deepseek_v3"))
    ordinary = filled({f"model.layers.{number}.input_layernorm.weight": (2,) for number in range(depth)})
    extra = filled({f"model.layers.{depth}.{part}.weight": (2,) for part in ("eh_proj", "enorm", "hnorm")})
    config = {"num_hidden_layers": depth, "num_nextn_predict_layers": 1}
    plan = there_and_back(tmp_path, rules, ordinary | extra, ordinary, config)
    assert {record.name for record in plan.report.dropped} == set(extra)
    asked = plan_of(tmp_path / "in", rules, specs(ordinary | extra), config)
    assert_same(asked.load(), ordinary | extra)


@pytest.mark.case("C19")
def test_c19_every_entry_applies_the_same_rules(tmp_path: Path) -> None:
    """C19: a fresh Mixtral's save loads bit-equal as a directory, an index, a list of files, one file and arrays."""
    params = tm_fused(2)
    target = tmp_path / "out"
    save_plan(MIXTRAL, specs(params)).save(to_mlx(params), target, max_shard_bytes=300)
    save_plan(MIXTRAL, specs(params)).save(to_mlx(params), tmp_path / "one")
    files = sorted(target.glob("*.safetensors"))
    assert len(files) > 2 and all(".block_sparse_moe.experts." in name for name in names_in(target))
    arrays = Checkpoint.open(tmp_path / "one")
    entries = [
        Checkpoint.open(target),
        Checkpoint.open(target / INDEX),
        Checkpoint.from_files(files),
        Checkpoint.from_files(reversed(files)),
        Checkpoint.open(tmp_path / "one" / "model.safetensors"),
        Checkpoint.from_arrays(build_plan(arrays, []).load()),
    ]
    for entry in entries:
        assert_same(build_plan(entry, MIXTRAL, specs(params)).load(), params)


GEMMA4 = (
    ("", "Gemma4ForConditionalGeneration", "gemma4"),
    ("model", "Gemma4Model", "gemma4"),
    ("model.language_model", "Gemma4TextModel", "gemma4_text"),
)


def gemma4_file() -> tuple[Arrays, list[str]]:
    """Two layers, both with keys and values, and which of these the model has no place for."""
    layers = "model.language_model.layers"
    names = {f"{layers}.{n}.self_attn.{part}_proj.weight": (2, 2) for n in (0, 1) for part in "qkvo"}
    names |= {f"{layers}.{n}.self_attn.k_norm.weight": (2,) for n in (0, 1)}
    spare = [name for name in names if f"{layers}.1." in name and (".k_" in name or ".v_" in name)]
    return filled(names), sorted(spare)


@pytest.mark.case("C20")
def test_c20_a_drop_rule_takes_shared_keys_and_says_why(tmp_path: Path) -> None:
    """C20: Gemma 4's last layer shares keys and values: three tensors are left out, counted and explained."""
    file, spare = gemma4_file()
    params = {name: array for name, array in file.items() if name not in spare}
    config = {"text_config": {"num_hidden_layers": 2, "num_kv_shared_layers": 1}}
    plan = there_and_back(tmp_path, model_rules(*GEMMA4), file, params, config)
    assert [record.name for record in plan.report.dropped] == spare
    assert "dropped: 3" in str(plan.report) and "of earlier ones" in str(plan.report)


@pytest.mark.case("C20")
def test_c20_where_the_config_does_not_share_the_error_groups_them_and_explains(tmp_path: Path) -> None:
    """C20: the same file for a model that has no place for them, by a config that does not say so."""
    file, spare = gemma4_file()
    params = {name: array.shape for name, array in file.items() if name not in spare}
    plan = build_plan(
        Checkpoint.from_specs(specs(file)), model_rules(*GEMMA4), specs(params), config={"text_config": {}}
    )
    with pytest.raises(PlanError) as caught:
        plan.check()
    assert "layers.1: self_attn.k_norm.weight, self_attn.k_proj.weight" in (caught.value.hint or "")
    assert "share" in (caught.value.hint or "")
