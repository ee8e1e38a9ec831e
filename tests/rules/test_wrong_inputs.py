"""Inputs that Transformers loads wrong without a word: here each is right, or an error that names what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.laws.worlds import tensor
from tests.rules.checkpoints import Held, Layout, comes_back, model_rules, write
from weightloom.engine import (
    Checkpoint,
    CheckpointError,
    Plan,
    PlanError,
    RuleSet,
    TensorSpec,
    build_plan,
)

MIXTRAL = model_rules(("", "MixtralForCausalLM", "mixtral"), ("model", "MixtralModel", "mixtral"))
QWEN3_MOE = model_rules(("", "Qwen3MoeForCausalLM", "qwen3_moe"), ("model", "Qwen3MoeModel", "qwen3_moe"))
BERT = model_rules(("", "BertForMaskedLM", "bert"), ("bert", "BertModel", "bert"), base="bert")
LAYER = "model.layers.0"
EXPERTS = f"{LAYER}.mlp.experts"
DOWN = r"mlp\.experts\.*.down_proj\.weight"
GATE_SHAPE, DOWN_SHAPE = (2, 4), (4, 2)
STACKS = {f"{EXPERTS}.gate_up_proj": (4, 4, 4), f"{EXPERTS}.down_proj": (4, 4, 2)}


def of(shapes: Mapping[str, tuple[int, ...]], dtype: str = "BF16") -> dict[str, TensorSpec]:
    return {name: TensorSpec(dtype, shape) for name, shape in shapes.items()}


def experts(numbers: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """The matrices of qwen3_moe's experts."""
    parts = {"gate": GATE_SHAPE, "up": GATE_SHAPE, "down": DOWN_SHAPE}
    return {f"{EXPERTS}.{n}.{part}_proj.weight": shape for n in numbers for part, shape in parts.items()}


def plan_of(
    file: Mapping[str, tuple[int, ...]],
    params: Mapping[str, tuple[int, ...]],
    rules: RuleSet = QWEN3_MOE,
    config: Mapping[str, Any] | None = None,
) -> Plan:
    return build_plan(Checkpoint.from_specs(of(file)), rules, of(params), config=config)


def refused(plan: Plan) -> PlanError:
    """The error of a plan that does not fit; a lenient load does not take it either."""
    with pytest.raises(PlanError) as caught:
        plan.check(strict=False)
    assert caught.value.tensor
    return caught.value


@pytest.mark.parametrize(("numbers", "lacking"), [((0, 2, 3, 9), (1,)), ((1, 2, 3, 4), (0,)), ((0, 1, 2), (3,))])
def test_experts_with_gaps_between_their_numbers(numbers: tuple[int, ...], lacking: tuple[int, ...]) -> None:
    plan = plan_of(experts(numbers), STACKS)
    error = refused(plan)
    assert f"index {lacking[0]}" in str(error) and LAYER in str(error)
    assert error.rule and "qwen2_moe.yaml" in error.rule
    assert {record.numbers for record in plan.report.incomplete} == {lacking}


def test_an_expert_too_many() -> None:
    plan = plan_of(experts(range(5)), STACKS)
    error = refused(plan)
    assert error.tensor in STACKS and "[5, 4, 4]" in str(error) and "[4, 4, 4]" in str(error)


def test_an_expert_without_one_of_its_parts() -> None:
    file = experts(range(4))
    del file[f"{EXPERTS}.2.up_proj.weight"]
    (record,) = plan_of(file, STACKS).report.incomplete
    assert record.group == f"{LAYER}" and record.numbers == (2,) and "up_proj" in record.pattern
    assert "up_proj" in str(refused(plan_of(file, STACKS)))


def test_experts_without_a_kind_of_part() -> None:
    file = {name: shape for name, shape in experts(range(4)).items() if "down" not in name}
    plan = plan_of(file, STACKS)
    with pytest.raises(PlanError, match=r"missing: 1\n.*down_proj"):
        plan.check()
    assert plan.report.missing == (f"{EXPERTS}.down_proj",)


def test_an_expert_of_another_shape() -> None:
    name = f"{EXPERTS}.1.down_proj.weight"
    error = refused(plan_of({**experts(range(4)), name: (4, 3)}, STACKS))
    assert error.tensor == f"{EXPERTS}.down_proj" and "[4, 3]" in str(error) and "[4, 2]" in str(error)


def test_fused_experts_and_single_ones_together() -> None:
    plan = plan_of({**experts(range(4)), **STACKS}, STACKS)
    error = refused(plan)
    assert f"{EXPERTS}.down_proj" in str(error) and f"{EXPERTS}.0.down_proj.weight" in str(error)
    assert {record.name for record in plan.report.ambiguous} == set(STACKS)


def test_a_product_that_does_not_divide_into_three() -> None:
    rules = model_rules(("", "GteModel", "gte"), base="gte")
    parts = dict.fromkeys((f"layers.0.self_attn.{name}_proj.weight" for name in "qkv"), (4, 6))
    error = refused(plan_of({"encoder.layer.0.attention.qkv_proj.weight": (13, 6)}, parts, rules))
    assert "13" in str(error) and error.rule and "gte.yaml" in error.rule
    assert error.tensor == "layers.0.self_attn.q_proj.weight"


@pytest.mark.parametrize(
    ("pair", "parameter", "rules"),
    [
        (("bert.x.LayerNorm.gamma", "bert.x.LayerNorm.weight"), "bert.x.LayerNorm.weight", BERT),
        ((f"{LAYER}.block_sparse_moe.gate.weight", f"{LAYER}.mlp.gate.weight"), f"{LAYER}.mlp.gate.weight", MIXTRAL),
    ],
    ids=["bert", "mixtral"],
)
def test_two_sources_of_one_parameter(pair: tuple[str, str], parameter: str, rules: RuleSet) -> None:
    plan = plan_of(dict.fromkeys(pair, (4,)), {parameter: (4,)}, rules)
    error = refused(plan)
    assert error.tensor == parameter and all(name in str(error) for name in pair)


def two_shards(folder: Path, index: bool) -> Path:
    """Both shards hold the final norm, with other values."""
    import json

    first, second = Layout().same(["model.norm.weight", "lm_head.weight"]), Layout().same(["x", "model.norm.weight"])
    for number, layout in enumerate((first, second)):
        written = write(folder / f"part-{number}", layout.file)
        (written / "model.safetensors").rename(folder / f"model-{number}.safetensors")
        written.rmdir()
    if index:
        where = {"model.norm.weight": "model-0.safetensors", "lm_head.weight": "model-0.safetensors"}
        text = json.dumps({"weight_map": where | {"x": "model-1.safetensors"}})
        (folder / "model.safetensors.index.json").write_text(text)
    return folder


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model-0\.safetensors and .*model-1\.safetensors") as caught:
        Checkpoint.open(two_shards(tmp_path, index=False))
    assert caught.value.tensor == "model.norm.weight"


def test_a_tensor_in_two_shards_of_which_the_index_names_one(tmp_path: Path) -> None:
    with Checkpoint.open(two_shards(tmp_path, index=True)) as checkpoint:
        place = checkpoint.tensors["model.norm.weight"].file
        loaded = build_plan(checkpoint, QWEN3_MOE).load()
    assert str(place).endswith("model-0.safetensors")
    assert loaded["model.norm.weight"].view(_u16()).tolist() == [[64, 65, 66], [67, 68, 69]]


def _u16() -> Any:
    import mlx.core as mx

    return mx.uint16


def test_an_index_that_names_a_tensor_that_its_shard_lacks(tmp_path: Path) -> None:
    folder = two_shards(tmp_path, index=True)
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace('"x"', '"y"'))
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.open(folder)
    assert caught.value.tensor == "y" and caught.value.file == str(index)
    assert "model-1.safetensors" in caught.value.seen


def test_a_prefix_on_every_name() -> None:
    params = {**STACKS, f"{LAYER}.mlp.gate.weight": (4, 4), "model.norm.weight": (4,), "lm_head.weight": (8, 4)}
    file = {**experts(range(4)), **{name: shape for name, shape in params.items() if name not in STACKS}}
    plan = plan_of({f"foo.{name}": shape for name, shape in file.items()}, params)
    error = refused(plan)
    assert "none of 15 tensors leads to a parameter" in str(error)
    assert "prefix foo. -> (none)" in (error.hint or "")


def test_a_tower_whose_class_has_no_rules() -> None:
    """An XCLIP file in its vision model alone, by the one class name of Transformers' list that no class has."""
    rules = model_rules(("", "XCLIPVisionModel", "xclip_vision_model"), base="")
    plan = plan_of({"vision_model.post_layernorm.weight": (4,)}, {"post_layernorm.weight": (4,)}, rules)
    error = refused(plan)
    assert plan.report.missing == ("post_layernorm.weight",)
    assert "prefix vision_model. -> (none)" in (error.hint or "")


def test_a_tensor_that_is_not_there() -> None:
    plan = plan_of({"model.norm.weight": (4,)}, {"model.norm.weight": (4,), "lm_head.weight": (8, 4)})
    with pytest.raises(PlanError, match=r"missing: 1\n  lm_head\.weight") as caught:
        plan.load()
    assert caught.value.tensor == "lm_head.weight"


def test_fp8_where_no_config_says_so() -> None:
    attention = f"{LAYER}.self_attn.q_proj.weight"
    file = {attention: TensorSpec("F8_E4M3", (4, 4)), f"{attention}_scale_inv": TensorSpec("F32", (1, 1))}
    plan = build_plan(Checkpoint.from_specs(file), QWEN3_MOE, of({attention: (4, 4)}))
    error = refused(plan)
    assert error.tensor == attention and "F8_E4M3" in str(error)
    assert plan.report.unexpected == (f"{attention}_scale_inv",)


def test_names_that_a_converter_made_are_reported_as_the_file_has_them() -> None:
    names = experts(range(4))
    plan = plan_of({**names, "model.norm.weight": (4,)}, {"model.norm.weight": (4,)})
    assert plan.report.unexpected == tuple(sorted(names))
    with pytest.raises(PlanError, match=r"experts\.\*\.down_proj\.weight x4"):
        plan.check()


def test_floats_of_another_width_are_those_of_the_file(tmp_path: Path) -> None:
    """A model in BF16, a file in F32: nothing is cast unless it is asked for."""
    file: Held = {
        name: tensor("F32", (2, 3), number) for number, name in enumerate(("model.norm.weight", "lm_head.weight"))
    }
    with Checkpoint.open(write(tmp_path / "in", file)) as checkpoint:
        plan = build_plan(checkpoint, QWEN3_MOE, of(dict.fromkeys(file, (2, 3))))
        plan.check()
        assert {spec.dtype for spec in plan.params.values()} == {"F32"}


def test_a_backbone_keeps_its_two_norms_apart(tmp_path: Path) -> None:
    """Exact names come first, in a file of the backbone's own and in a published one."""
    rules = model_rules(("", "PixioBackbone", "pixio"), ("pixio", "PixioModel", "pixio"), base="pixio")
    own = Layout().same(["layernorm.weight", "pixio.layernorm.weight", "pixio.layers.0.mlp.fc1.weight"])
    comes_back(tmp_path / "own", own, rules)
    names = {"layernorm.weight": "layernorm.weight", "encoder.layernorm.weight": "pixio.layernorm.weight"}
    comes_back(tmp_path / "published", Layout().renamed(names), rules)


def test_square_experts_of_an_unknown_version() -> None:
    rules = model_rules(("", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe"))
    square = {f"model.language_model.layers.0.mlp.experts.{name}": (2, 4, 4) for name in ("gate_up_proj", "down_proj")}
    config = {"text_config": {"hidden_size": 4, "moe_intermediate_size": 4}}
    error = refused(plan_of(square, square, rules, config))
    assert error.tensor in square and error.rule and "qwen3_vl_moe.yaml" in error.rule
