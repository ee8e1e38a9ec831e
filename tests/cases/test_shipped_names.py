"""Cases C01-C03, C05-C07, C13 and C14 on the rules that ship: names there and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import (
    assert_same,
    const,
    filled,
    plan_of,
    specs,
    t0,
    write,
)
from tests.cases.shipped import there_and_back, written_fresh
from tests.rules.checkpoints import model_rules
from weightloom.engine import RuleSet, WeightRenaming, save_plan


@pytest.mark.case("C01")
@pytest.mark.parametrize("name", ["layers.0.layernorm_before.weight", "encoder.layer.0.layernorm_before.weight"])
def test_c01_a_name_in_file_form_is_saved_as_it_is(tmp_path: Path, name: str) -> None:
    """C01: a fresh ViT, its layers named either way, has one set of file names however often it goes round."""
    rules = model_rules(("", "ViTModel", "vit"), base="vit")
    params = {name: const(1.5, 2, 2)}
    seen = []
    for turn in range(3):
        seen.append(written_fresh(rules, params, tmp_path / str(turn)))
        assert_same(plan_of(tmp_path / str(turn), rules, specs(params)).load(), params)
    (one,) = seen[0]
    assert seen == [{one}] * 3 and one.count("encoder.layer.") == 1


@pytest.mark.case("C02")
@pytest.mark.parametrize("name", ["model.llm.embed.weight", "model.embed_tokens.weight"])
def test_c02_a_rule_that_matched_nothing_does_not_fire_on_save(tmp_path: Path, name: str) -> None:
    """C02: an Inkling text model in its published form, and in the form of the parameters."""
    rules = model_rules(("", "Inkling2TextModel", "inkling2_text"))
    array = const(2.0, 16, 8)
    there_and_back(tmp_path, rules, {name: array}, {"model.embed_tokens.weight": array})


@pytest.mark.case("C03")
@pytest.mark.parametrize("prefix", ["vision_model.", ""])
def test_c03_a_part_that_was_taken_off_comes_back_only_where_it_was(tmp_path: Path, prefix: str) -> None:
    """C03: both forms of a CLIP tower load alike, and each saves back as it was."""
    rules = model_rules(("", "CLIPVisionModel", "clip_vision_model"), base="")
    array = const(3.0, 2)
    there_and_back(tmp_path, rules, {f"{prefix}post_layernorm.weight": array}, {"post_layernorm.weight": array})


@pytest.mark.case("C03")
def test_c03_a_fresh_model_saves_its_own_names_and_says_so(tmp_path: Path) -> None:
    """C03: the level that the published form has is not made up, and the report says so."""
    rules = model_rules(("", "CLIPVisionModel", "clip_vision_model"), base="")
    params = {"post_layernorm.weight": const(3.0, 2)}
    assert written_fresh(rules, params, tmp_path) == set(params)
    assert any("vision_model" in note for note in save_plan(rules, specs(params)).report.notes)


@pytest.mark.case("C05")
def test_c05_two_captures(tmp_path: Path) -> None:
    """C05: a number and a word, both kept, in four names there and back."""
    rules = model_rules(("", "Sapiens2ForImageMatting", "sapiens2"), base="model")
    pairs = {(number, end): const(10 * number + len(end), 2, 2) for number in (0, 11) for end in ("weight", "bias")}
    published = {f"decode_head.upsample_blocks.{n}.0.{end}": array for (n, end), array in pairs.items()}
    write(tmp_path / "model.safetensors", published)
    plan = plan_of(tmp_path, rules)
    made = {name: np.array(array) for name, array in plan.load().items()}
    assert len(made) == 4 and not set(made) & set(published)
    assert {name.split(".")[-1] for name in made} == {"weight", "bias"}
    assert sorted(float(array[0, 0]) for array in made.values()) == [4.0, 6.0, 114.0, 116.0]
    assert written_fresh(rules, made, tmp_path / "fresh") == set(published)


@pytest.mark.case("C06")
def test_c06_rules_chain(tmp_path: Path) -> None:
    """C06: three renames of HY-V4-VL act on one name, one after the other, and are undone from the last on."""
    rules = model_rules(("", "HYV4VLForConditionalGeneration", "hy_v4_vl"), ("model", "HYV4VLModel", "hy_v4_vl"))
    names = {
        "vit.perceive.proj.0.weight": "model.vision_tower.patch_merger.proj_conv.weight",
        "vit.perceive.norm.weight": "model.vision_tower.patch_merger.before_rms.weight",
        "model.norm.weight": "model.language_model.norm.weight",
    }
    file = filled(dict.fromkeys(names, (2,)))
    params = {names[name]: array for name, array in file.items()}
    there_and_back(tmp_path, rules, file, params)
    assert written_fresh(rules, params, tmp_path / "fresh") == set(file)


@pytest.mark.case("C07")
def test_c07_only_the_layer_norms_gamma_and_beta_are_renamed(tmp_path: Path) -> None:
    """C07: with the legacy names of any model, here BERT's."""
    rules = model_rules(("", "BertModel", "bert"), base="bert")
    names = {
        "embeddings.LayerNorm.gamma": "embeddings.LayerNorm.weight",
        "embeddings.LayerNorm.beta": "embeddings.LayerNorm.bias",
        **{name: name for name in ("blk.ls1.gamma", "blk.beta", "alphabeta.weight")},
    }
    file = filled(dict.fromkeys(names, (4,)))
    there_and_back(tmp_path, rules, file, {names[name]: array for name, array in file.items()})


@pytest.mark.case("C13")
def test_c13_nothing_vanishes_where_a_prefix_is_given_back_to_one_name_only(tmp_path: Path) -> None:
    """C13: the caller's two rules before llama's own. Chosen: all load; the report names the rule set aside."""
    strip = WeightRenaming(r"^model\.", "")
    restore = WeightRenaming("^embed_tokens.weight", "model.embed_tokens.weight")
    llama = model_rules(("", "LlamaForCausalLM", "llama"), ("model", "LlamaModel", "llama"))
    rules = RuleSet((strip, restore, *llama))
    plan = there_and_back(tmp_path, rules, t0(), t0())
    aside = {record.name: record.rule for record in plan.report.set_aside}
    assert aside["model.norm.weight"] == strip.title()
    assert not plan.report.missing and not plan.report.unexpected


@pytest.mark.case("C14")
def test_c14_a_lookahead_is_not_written_into_a_name(tmp_path: Path) -> None:
    """C14: Qwen2-VL's three names there and back."""
    rules = model_rules(
        ("", "Qwen2VLForConditionalGeneration", "qwen2_vl"),
        ("model", "Qwen2VLModel", "qwen2_vl"),
        ("model.visual", "Qwen2VisionTransformerPretrainedModel", "qwen2_vl_vision"),
        ("model.language_model", "Qwen2VLTextModel", "qwen2_vl_text"),
    )
    names = {
        "visual.blocks.0.w": "model.visual.blocks.0.w",
        "model.layers.0.w": "model.language_model.layers.0.w",
        "lm_head.weight": "lm_head.weight",
    }
    file = filled(dict.fromkeys(names, (2,)))
    params = {names[name]: array for name, array in file.items()}
    there_and_back(tmp_path, rules, file, params)
    assert written_fresh(rules, params, tmp_path / "fresh") == set(file)
