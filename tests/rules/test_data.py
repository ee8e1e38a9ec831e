"""Every rule file that ships: it lints clean, can be found, says why, and its renames come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from weightloom.engine.errors import NotInvertible
from weightloom.engine.mapping.claims import Tie
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.mapping.scope import ModuleNode, scoped_rules
from weightloom.engine.planning.resolve import resolve
from weightloom.rules import lint_rules, load_rules, module_nodes, registry
from weightloom.rules.document import SubModel
from weightloom.rules.linting.examples import example
from weightloom.rules.parse import parse_rules
from weightloom.rules.sources import SHIPPED

FILES = sorted(SHIPPED.glob("*.yaml"))
LAYOUTS = [(path.stem, layout) for path in FILES for layout in registry.layouts(path.stem) if layout != "gguf"]


def renamed(rules: RuleSet, *names: str) -> list[str]:
    """Give where names go through all renames of a rule list."""
    return [found.renamed for found in resolve(names, tuple(rules))[1]]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_shipped_file(file: Path) -> None:
    assert lint_rules(file) == []
    found = parse_rules(file.read_bytes(), file.name)
    assert found.head.family == file.stem
    assert found.head.identifiers or any(f"extends: {file.stem}\n" in each.read_text() for each in FILES)
    assert all(rule.why for layout in found.layouts for rule in layout.rules if layout.name == "hf")
    for identifier in found.head.identifiers:
        assert registry.file(identifier).head == found.head
        assert load_rules(identifier) == registry(identifier)


def test_another_layout_of_llama_is_not_its_relatives() -> None:
    assert "gguf" in registry.layouts("mistral")
    assert not any("gguf" in registry.layouts(relative) for relative in ("qwen2", "gemma2", "mixtral"))


def test_no_problem_and_no_identifier_twice() -> None:
    assert registry.problems == ()
    assert {path.stem for path in FILES} == set(registry.families())


def is_written(rule: WeightRenaming) -> bool:
    """Say whether a rename has a way back; one that is never written need not."""
    try:
        return bool(rule.inverse())
    except NotInvertible:
        assert not rule.always
        return False


@pytest.mark.parametrize(("family", "layout"), LAYOUTS)
def test_renames_come_back(family: str, layout: str) -> None:
    """Those whose target says where it holds need a whole name: the comparison over all keys has them."""
    for rule in load_rules(family, layout):
        if isinstance(rule, WeightRenaming) and "(?" not in rule.target_patterns[0] and is_written(rule):
            name = f"{example(rule.sources[0])}.weight".replace("..", ".")
            after = rule.rewrite(name)
            assert after is not None
            assert rule.inverse().rewrite(after) == name


@pytest.mark.case("C07")
def test_legacy_names_are_only_a_layer_norm_s() -> None:
    """Case C07."""
    names = ["emb.LayerNorm.gamma", "emb.LayerNorm.beta", "blk.ls1.gamma", "blk.beta", "alphabeta.weight"]
    wanted = ["emb.LayerNorm.weight", "emb.LayerNorm.bias", "blk.ls1.gamma", "blk.beta", "alphabeta.weight"]
    assert renamed(load_rules("legacy"), *names) == wanted
    assert not any(rule.always for rule in load_rules("legacy") if isinstance(rule, WeightRenaming))


@pytest.mark.case("C28")
@pytest.mark.parametrize(
    ("identifier", "config", "tied"),
    [
        ("llama", {}, False),
        ("llama", {"tie_word_embeddings": True}, True),
        ("gemma2", {}, True),
        ("gemma2", {"tie_word_embeddings": False}, False),
        ("llava", {"text_config": {"tie_word_embeddings": True}}, True),
        ("llava", {"tie_word_embeddings": False, "text_config": {"tie_word_embeddings": True}}, False),
        ("llava", {"tie_word_embeddings": True, "text_config": {"tie_word_embeddings": False}}, True),
        ("llava", {}, False),
        ("gemma3", {}, True),
        ("gemma3", {"text_config": {"tie_word_embeddings": False}}, False),
        ("gemma3", {"tie_word_embeddings": False, "text_config": {}}, False),
    ],
)
def test_when_the_head_is_tied(identifier: str, config: dict[str, object], tied: bool) -> None:
    """Case C28 and its kin. Chosen: where both configs have the flag, the outer one decides."""
    ties = [rule for rule in load_rules(identifier) if isinstance(rule, Tie) and rule.applies(config, {})]
    ends = {rule.other_end("lm_head.weight") for rule in ties}
    wanted = "model.language_model.embed_tokens.weight" if identifier in ("llava", "gemma3") else None
    assert ends == ({wanted or "model.embed_tokens.weight"} if tied else set())


def test_both_forms_of_a_checkpoint_go_through_the_llava_pair() -> None:
    nodes = module_nodes("LlavaForConditionalGeneration", "llava", registry.tree("llava"), {})
    rules = scoped_rules(nodes, registry, "model")
    old = ["language_model.model.layers.0.mlp.w", "language_model.lm_head.weight", "vision_tower.x", "image_newline"]
    new = ["model.language_model.layers.0.mlp.w", "lm_head.weight", "model.vision_tower.x", "image_newline"]
    assert renamed(rules, *old) == new
    assert renamed(rules, *new) == new


def test_a_tower_s_rules_are_found_by_the_class_that_its_type_makes() -> None:
    config = {"text_config": {"model_type": "llama"}, "vision_config": {"model_type": "clip_vision_model"}}
    tree = registry.tree("llava")
    nodes = module_nodes("LlavaForConditionalGeneration", "llava", tree, config, registry.part_class)
    rules = scoped_rules(nodes, registry, "model")
    assert renamed(rules, "vision_tower.vision_model.post_layernorm.bias") == ["model.vision_tower.post_layernorm.bias"]


def test_a_sub_model_may_have_the_config_of_the_whole() -> None:
    nodes = module_nodes("SwinBackbone", "swin", registry.tree("SwinBackbone"), {"model_type": "swin"})
    assert nodes[1] == ModuleNode("swin", "SwinModel", "swin")


def test_the_detr_pair_is_scoped_to_its_model() -> None:
    nodes = module_nodes("DetrForSegmentation", "detr", registry.tree("DetrForSegmentation"), {})
    rules = scoped_rules(nodes, registry, "model")
    names = ["detr.model.encoder.layers.0.fc1.weight", "mask_head.lay1.weight", "bbox_attention.q_linear.bias"]
    wanted = ["detr.model.encoder.layers.0.mlp.fc1.weight", "mask_head.conv1.conv.weight", "bbox_attention.q_proj.bias"]
    assert renamed(rules, *names) == wanted
    assert renamed(rules, "other.layers.0.fc1.weight") == ["other.layers.0.fc1.weight"]


def test_the_tree_gives_the_nodes_of_a_walk() -> None:
    config = {
        "text_config": {"model_type": "llama"},
        "vision_config": {"model_type": ""},
        "a": {"b": {"model_type": "c"}},
    }
    tree = [*reversed(registry.tree("llava")), SubModel("z", None, "a.b"), SubModel("y", None, "a.none.b")]
    assert module_nodes("Llava", "llava", tree, config) == (
        ModuleNode("", "Llava", "llava"),
        ModuleNode("model", "LlavaModel", None),
        ModuleNode("model.language_model", "", "llama"),
        ModuleNode("model.vision_tower", "", None),
        ModuleNode("y", "", None),
        ModuleNode("z", "", "c"),
    )
