"""The ten examples of the rule semantics that must come out as they are stated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from weightloom.engine import (
    Checkpoint,
    Chunk,
    Concatenate,
    MergeModulelist,
    ModuleNode,
    PermuteForRope,
    RenameGroup,
    Rule,
    RuleSet,
    Scope,
    Split,
    TensorSpec,
    Transpose,
    WeightConverter,
    WeightRenaming,
    build_plan,
    save_plan,
    scoped_rules,
)
from weightloom.engine.planning.resolve import resolve, resolve_each

SPEC = TensorSpec("F32", (4, 2))


def renamed(rules: Sequence[Rule], *names: str) -> list[str]:
    """Names after the renames, by shape; the slow path must agree."""
    fast = [each.renamed for each in resolve(names, rules)[1]]
    assert fast == [each.renamed for each in resolve_each(names, rules)[1]]
    return fast


def saved(rules: Sequence[Rule], *parameters: str) -> set[str]:
    """The file's names for a fresh model."""
    return set(save_plan(RuleSet(rules), dict.fromkeys(parameters, SPEC)).sources)


def checkpoint(names: Iterable[str], spec: TensorSpec = SPEC) -> Checkpoint:
    return Checkpoint.from_specs(dict.fromkeys(names, spec))


def test_1_renames_chain_in_order_and_each_replaces_once() -> None:
    rules = [WeightRenaming("^vision_model", "model.vision"), WeightRenaming("model", "net")]
    assert renamed(rules, "vision_model.x", "model.vision_model.model.w") == [
        "net.vision.x",
        "net.vision_model.model.w",
    ]


def test_2_a_pattern_ends_at_a_name_boundary() -> None:
    rules = [WeightRenaming("norm", "ln")]
    assert renamed(rules, "model.norm1.norm.weight") == ["model.norm1.ln.weight"]
    assert saved(rules, "model.norm1.ln.weight") == {"model.norm1.norm.weight"}


def test_3_a_lookahead_is_not_written_back() -> None:
    rules = [WeightRenaming(r"^model(?!\.(language_model|visual))", "model.language_model")]
    assert renamed(rules, "model.layers.0.w", "model.visual.b") == ["model.language_model.layers.0.w", "model.visual.b"]
    assert saved(rules, "model.language_model.layers.0.w", "model.visual.b") == {"model.layers.0.w", "model.visual.b"}


def test_4_several_captures() -> None:
    rules = [WeightRenaming(r"layers\.(\d+)\.blk\.(\d+)\.lin", r"layers.\1.block.\2.linear")]
    assert renamed(rules, "layers.3.blk.11.lin.w") == ["layers.3.block.11.linear.w"]
    assert saved(rules, "layers.3.block.11.linear.w") == {"layers.3.blk.11.lin.w"}


def test_5_a_fresh_model_in_file_form_is_saved_as_it_is() -> None:
    rules = [WeightRenaming(r"encoder\.layers", "layers")]
    assert saved(rules, "encoder.layers.0.w") == {"encoder.layers.0.w"}
    assert saved(rules, "layers.0.w") == {"encoder.layers.0.w"}


def test_6_gemma3_root_first_then_the_inner_class_in_an_empty_scope() -> None:
    lookup = {
        "gemma3": RuleSet(
            [
                WeightRenaming(r"^language_model\.lm_head", "lm_head"),
                WeightRenaming("^language_model", "model.language_model"),
                WeightRenaming("^vision_tower", "model.vision_tower"),
            ]
        ),
        "Gemma3Model": RuleSet([WeightRenaming(r"^language_model\.model", "language_model")]),
    }
    nodes = [
        ModuleNode("", "Gemma3ForConditionalGeneration", "gemma3"),
        ModuleNode("model", "Gemma3Model", "gemma3"),
        ModuleNode("model.language_model", "Gemma3TextModel", "gemma3_text"),
    ]
    rules = scoped_rules(nodes, lookup.get, base_model_prefix="model")
    assert [rule.scope for rule in rules] == [None, None, None, Scope("", "model")]
    names = ["language_model.model.layers.0.mlp.w", "language_model.lm_head.weight", "vision_tower.x.w"]
    assert renamed(rules.rules, *names) == [
        "model.language_model.layers.0.mlp.w",
        "lm_head.weight",
        "model.vision_tower.x.w",
    ]


def test_7_one_group_a_layer_and_each_part_permuted_by_its_own_head_count() -> None:
    rule = WeightConverter(
        r"layers\.*.qkv_proj",
        [r"layers\.*.q_proj", r"layers\.*.k_proj", r"layers\.*.v_proj"],
        [Split(0, [8, 4, 4]), PermuteForRope(permute_layer_names=["q_proj", "k_proj"])],
    )
    names = [f"model.layers.{i}.attn.qkv_proj.weight" for i in range(12)]
    config = {"num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 8}
    plan = build_plan(checkpoint(names, TensorSpec("F32", (16, 3))), RuleSet([rule]), config=config)
    plan.check()
    assert len(plan.groups) == 12
    import numpy as np

    from weightloom.engine.views.algebra import NumpyAlgebra

    rows = np.arange(48).reshape(16, 3)
    q, k, v = plan.groups[0].program.apply((rows,), NumpyAlgebra())
    assert plan.groups[0].targets == tuple(f"model.layers.0.attn.{part}_proj.weight" for part in "qkv")
    assert q[:, 0].tolist() == [0, 6, 3, 9, 12, 18, 15, 21]
    assert k[:, 0].tolist() == [24, 30, 27, 33]
    assert v.tolist() == rows[12:].tolist()


def test_8_a_converter_does_not_claim_a_longer_name() -> None:
    rule = WeightConverter(r"experts\.gate_up_proj", [r"experts\.gate", r"experts\.up"], [Chunk(1)])
    names = ["experts.gate_up_proj", "experts.gate_up_proj_scale_inv"]
    resolved = {each.name: each for each in resolve(names, [rule])[1]}
    assert resolved["experts.gate_up_proj"].claims
    assert not resolved["experts.gate_up_proj_scale_inv"].claims


def test_parts_are_found_below_a_root_whose_class_is_not_known() -> None:
    """A config without `architectures`: no class name is no name that an ancestor has already."""
    nodes = [ModuleNode("", "", "whole"), ModuleNode("model.text", "", "text")]
    known = {"whole": RuleSet([WeightRenaming("a", "b")]), "text": RuleSet([WeightRenaming("c", "d")])}
    assert [rule.summary() for rule in scoped_rules(nodes, known.get, "model")] == ["a -> b", "c -> d"]


def test_9_one_pattern_in_two_scopes_keeps_two_meanings() -> None:
    rules = RuleSet(
        [
            WeightConverter(r"qkv", [r"q", r"k"], [Chunk(dim)], scope=Scope(tower))
            for tower, dim in (("text", 0), ("vision", 1))
        ]
    )
    plan = build_plan(checkpoint(["text.qkv", "vision.qkv"]), rules)
    plan.check()
    shapes = {name: spec.shape for name, spec in plan.params.items()}
    assert shapes == {"text.q": (2, 2), "text.k": (2, 2), "vision.q": (4, 1), "vision.k": (4, 1)}


def test_10_a_bare_dot_is_matched_name_by_name() -> None:
    rules = [WeightRenaming(r"encoder.block.(\d+).", r"layers.\1.")]
    names = [f"encoder.block.{i}" for i in (7, 12)]
    assert renamed(rules, *names) == ["encoder.block.7", "layers.1."]


@pytest.mark.parametrize("shuffled", [False, True])
def test_experts_are_stacked_by_number(shuffled: bool) -> None:
    rule = WeightConverter(
        [r"experts\.*.gate\.weight", r"experts\.*.up\.weight"],
        r"experts\.gate_up",
        [MergeModulelist(0), Concatenate(1)],
    )
    names = [f"experts.{i}.{part}.weight" for i in range(12) for part in ("gate", "up")]
    plan = build_plan(checkpoint(sorted(names) if shuffled else names), RuleSet([rule]))
    expected = tuple(f"experts.{i}.{part}.weight" for part in ("gate", "up") for i in range(12))
    assert plan.groups[0].sources == expected
    assert plan.params == {"experts.gate_up": TensorSpec("F32", (12, 8, 2))}


def test_a_fresh_group_is_undone_only_where_its_last_name_is_there() -> None:
    rules = [RenameGroup([r"\.norm0", r"\.norm1"], [".norm1", ".norm2"])]
    assert saved(rules, "l.norm1.w", "l.norm2.w") == {"l.norm0.w", "l.norm1.w"}
    assert saved(rules, "l.norm1.w", "l.other.w") == {"l.norm1.w", "l.other.w"}


def test_sizes_from_the_parameters_are_those_before_the_ops_that_follow() -> None:
    rule = WeightConverter("qkv", ["q", "k"], [Split(0), Transpose(0, 1)])
    params = {"q": TensorSpec("F32", (5, 4)), "k": TensorSpec("F32", (5, 2))}
    plan = build_plan(checkpoint(["qkv"], TensorSpec("F32", (6, 5))), RuleSet([rule]), params)
    plan.check()
    assert plan.params == params


@pytest.mark.parametrize(("present", "lacking"), [((0, 1, 2), (3,)), ((0, 2, 3, 9), (1,)), ((1, 2, 3), (0,))])
def test_a_group_needs_as_many_as_its_target_is_long(present: tuple[int, ...], lacking: tuple[int, ...]) -> None:
    rule = WeightConverter(r"experts\.*.up\.weight", r"experts\.up", [MergeModulelist(0)])
    names = [f"l.0.experts.{i}.up.weight" for i in present]
    plan = build_plan(checkpoint(names), RuleSet([rule]), {"l.0.experts.up": TensorSpec("F32", (4, 4, 2))})
    assert [(each.group, each.numbers) for each in plan.report.incomplete] == [("l.0", lacking)]


def test_a_fresh_group_decides_on_names_as_later_rules_leave_them() -> None:
    rules = [RenameGroup([r"\.norm0", r"\.norm1"], [".norm1", ".norm2"]), WeightRenaming(r"\.norm2", ".final")]
    assert saved(rules, "l.norm1.w", "l.final.w") == {"l.norm0.w", "l.norm1.w"}
