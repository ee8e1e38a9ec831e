"""Patterns and names with which Transformers breaks, beside the rules that ship: each works or is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.rules.checkpoints import Layout, comes_back, model_rules, specs
from weightloom.engine import (
    Chunk,
    ModuleNode,
    NotInvertible,
    RuleError,
    RuleSet,
    WeightConverter,
    WeightRenaming,
    save_plan,
    scoped_rules,
)
from weightloom.rules import registry

LLAMA = model_rules(("", "LlamaForCausalLM", "llama"), ("model", "LlamaModel", "llama"))


def before(rule: WeightRenaming) -> RuleSet:
    """A rule of one's own comes before those that ship."""
    return RuleSet((rule, *LLAMA), LLAMA.base_model_prefix)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"^[fb]oo\.", ("foo.embed_tokens.weight", "boo.norm.weight")),
        (r"^(?:foo\.)?bar\.", ("foo.bar.embed_tokens.weight", "bar.norm.weight")),
        (r"^(foo|bar)\.", ("foo.embed_tokens.weight", "bar.norm.weight")),
    ],
)
def test_a_pattern_that_forgets_what_it_matched(tmp_path: Path, pattern: str, names: tuple[str, str]) -> None:
    """What was loaded is written from the record; a fresh model is refused, and no pattern text gets into a name."""
    rules = before(WeightRenaming(pattern, "model."))
    parameters = [f"model.{name.split('.', name.count('.') - 1)[-1]}" for name in names]
    layout = Layout().renamed(dict(zip(names, parameters, strict=True)))
    comes_back(tmp_path, layout, rules)
    with pytest.raises(NotInvertible) as caught:
        save_plan(rules, specs(layout.params))
    assert caught.value.rule and pattern in caught.value.rule


def test_the_second_capture(tmp_path: Path) -> None:
    rules = before(WeightRenaming(r"^net\.(\w+)\.b(\d+)\.", r"model.layers.\2.\1."))
    layout = Layout().renamed({"net.mlp.b3.up_proj.weight": "model.layers.3.mlp.up_proj.weight"})
    comes_back(tmp_path, layout, rules)
    assert set(save_plan(rules, specs(layout.params)).sources) == set(layout.file)


def test_a_capture_that_is_not_there() -> None:
    with pytest.raises(RuleError, match=r"\\2"):
        WeightRenaming(r"^net\.(\d+)\.", r"model.\1.\2.")


@pytest.mark.parametrize("odd", ["a(b", "a(b)", "a[b", "a*b", "a|b", "a\\b", "a$b", "{2i}", "%s"])
def test_names_are_no_patterns(tmp_path: Path, odd: str) -> None:
    nodes = [ModuleNode("", "LlamaModel", "llama"), ModuleNode(odd, "MixtralModel", "mixtral")]
    rules = scoped_rules(nodes, registry)
    layout = Layout().same([f"{odd}.{odd}.weight", f"layers.0.{odd}.weight"])
    layout.renamed({f"{odd}.layers.0.block_sparse_moe.gate.weight": f"{odd}.layers.0.mlp.gate.weight"})
    comes_back(tmp_path, layout, rules)
    assert set(save_plan(rules, specs(layout.params)).sources) == set(layout.file)


def test_one_pattern_in_two_scopes(tmp_path: Path) -> None:
    """Both towers' classes have a converter of one pattern, with other ops: each tower gets its own."""
    lookup = {
        name: RuleSet([WeightConverter("qkv_proj", ["q_proj", "k_proj"], [Chunk(dim)])])
        for name, dim in (("TextTower", 0), ("VisionTower", 1))
    }
    nodes = [
        ModuleNode("", "TwoTowers", "two_towers"),
        ModuleNode("model.text", "TextTower", "text_tower"),
        ModuleNode("model.vision", "VisionTower", "vision_tower"),
    ]
    rules = scoped_rules(nodes, lambda name: lookup.get(name) or registry(name), "model")
    layout = Layout()
    for tower, axis in (("text", 0), ("vision", 1)):
        whole = layout.array(4, 6)
        halves = [np.ascontiguousarray(half) for half in np.split(whole, 2, axis)]
        names = [f"model.{tower}.{part}_proj.weight" for part in "qk"]
        layout.added({f"model.{tower}.qkv_proj.weight": whole}, dict(zip(names, halves, strict=True)))
    comes_back(tmp_path, layout, rules)
