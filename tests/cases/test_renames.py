"""Cases C01-C07, C13, C14: names there and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import (
    Arrays,
    assert_same,
    const,
    contents,
    filled,
    names_in,
    plan_of,
    specs,
    t0,
    to_mlx,
    write,
)
from weightloom.engine import (
    Concatenate,
    MergeModulelist,
    PrefixChange,
    Rule,
    RuleSet,
    WeightConverter,
    WeightRenaming,
    save_plan,
)


def load_and_save(tmp_path: Path, rules: list[Rule], file: Arrays, params: Arrays) -> None:
    """A file loads into these parameters and is written back byte for byte."""
    write(tmp_path / "in" / "model.safetensors", file)
    plan = plan_of(tmp_path / "in", rules, specs(params))
    loaded = plan.load()
    assert_same(loaded, params)
    plan.save(loaded, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "in")


@pytest.mark.case("C01")
def test_c01_a_name_in_file_form_is_saved_as_it_is(tmp_path: Path) -> None:
    """C01: a fresh model with `encoder.layers.0...` is not saved as `encoder.encoder.layers.0...`."""
    rules = RuleSet([WeightRenaming("encoder.layers", "layers")])
    params = {"encoder.layers.0.attn.out_proj.weight": const(1.5, 2, 2)}
    arrays, seen = to_mlx(params), []
    for round_number in range(3):
        target = tmp_path / str(round_number)
        save_plan(rules, specs(params)).save(arrays, target)
        seen.append(names_in(target))
        plan = plan_of(target, rules, specs(params))
        arrays = plan.load()
        assert_same(arrays, params)
        plan.save(arrays, tmp_path / f"{round_number}-again")
        assert contents(tmp_path / f"{round_number}-again") == contents(target)
    assert seen == [set(params)] * 3


@pytest.mark.case("C02")
@pytest.mark.parametrize("name", ["backbone.embeddings.weight", "backbone.embedding.weight"])
def test_c02_a_rule_that_matched_nothing_does_not_fire_on_save(tmp_path: Path, name: str) -> None:
    """C02: a plural file saves plural, a singular one singular, under one rename to the plural."""
    array = const(2.0, 16, 8)
    rules: list[Rule] = [WeightRenaming("embedding.weight", "embeddings.weight")]
    load_and_save(tmp_path, rules, {name: array}, {"backbone.embeddings.weight": array})


@pytest.mark.case("C03")
@pytest.mark.parametrize("name", ["model.language_model.layers.0.w", "model.layers.0.w"])
def test_c03_a_part_that_was_taken_off_comes_back_only_where_it_was(tmp_path: Path, name: str) -> None:
    """C03: both files load into `model.layers.0.w`, and each saves back under its own name."""
    array = const(3.0, 2)
    rules: list[Rule] = [PrefixChange(prefix_to_remove="language_model", model_prefix="model")]
    load_and_save(tmp_path, rules, {name: array}, {"model.layers.0.w": array})


@pytest.mark.case("C03")
def test_c03_a_fresh_model_saves_its_own_names_and_says_so(tmp_path: Path) -> None:
    """C03: a model that was never loaded writes its native name; the report says what was not written."""
    rules = [PrefixChange(prefix_to_remove="language_model", model_prefix="model")]
    plan = save_plan(rules, specs({"model.layers.0.w": (2,)}))
    plan.save(to_mlx({"model.layers.0.w": const(3.0, 2)}), tmp_path / "out")
    assert names_in(tmp_path / "out") == {"model.layers.0.w"}
    assert any("language_model" in note for note in plan.report.notes)


@pytest.mark.case("C04")
def test_c04_a_leaf_pattern_ends_at_a_name_boundary(tmp_path: Path) -> None:
    """C04: the rule for `experts.gate_up_proj` leaves `experts.gate_up_proj_scale_inv` alone, there and back."""
    rules = RuleSet(
        [
            WeightConverter(
                ["experts.*.gate_proj.weight", "experts.*.up_proj.weight"],
                "experts.gate_up_proj",
                [MergeModulelist(0), Concatenate(1)],
            )
        ]
    )
    mlp = "model.layers.0.mlp.experts"
    params = filled({f"{mlp}.gate_up_proj": (2, 8, 8), f"{mlp}.gate_up_proj_scale_inv": (2, 1, 1)})
    save_plan(rules, specs(params)).save(to_mlx(params), tmp_path / "out")
    experts = {f"{mlp}.{i}.{part}_proj.weight" for i in (0, 1) for part in ("gate", "up")}
    assert names_in(tmp_path / "out") == {*experts, f"{mlp}.gate_up_proj_scale_inv"}
    assert_same(plan_of(tmp_path / "out", rules, specs(params)).load(), params)


@pytest.mark.case("C05")
def test_c05_two_captured_numbers(tmp_path: Path) -> None:
    """C05: `layers.i.blk.j.lin` -> `layers.i.block.j.linear`: four values in place, four names back."""
    rules: list[Rule] = [WeightRenaming(r"layers\.(\d+)\.blk\.(\d+)\.lin", r"layers.\1.block.\2.linear")]
    numbers = [(i, j) for i in (0, 1) for j in (0, 1)]
    file = {f"layers.{i}.blk.{j}.lin.weight": const(10 * i + j, 2, 2) for i, j in numbers}
    params = {f"layers.{i}.block.{j}.linear.weight": const(10 * i + j, 2, 2) for i, j in numbers}
    load_and_save(tmp_path, rules, file, params)
    save_plan(rules, specs(params)).save(to_mlx(params), tmp_path / "fresh")
    assert names_in(tmp_path / "fresh") == set(file)


@pytest.mark.case("C06")
def test_c06_rules_chain_and_each_rewrites_once(tmp_path: Path) -> None:
    """C06: `^vision_model` -> `model.vision`, then `model` -> `net`, first match only; both names come back."""
    rules: list[Rule] = [WeightRenaming("^vision_model", "model.vision"), WeightRenaming("model", "net")]
    one, two = const(1.0, 2), const(2.0, 2)
    file = {"vision_model.x": one, "model.vision_model.model.w": two}
    load_and_save(tmp_path, rules, file, {"net.vision.x": one, "net.vision_model.model.w": two})


@pytest.mark.case("C07")
def test_c07_only_the_layer_norms_gamma_and_beta_are_renamed(tmp_path: Path) -> None:
    """C07: two LayerNorm names become weight and bias; three parameters that are called so stay."""
    rules: list[Rule] = [
        WeightRenaming(r"LayerNorm\.gamma", "LayerNorm.weight"),
        WeightRenaming(r"LayerNorm\.beta", "LayerNorm.bias"),
    ]
    file = filled(
        {
            "emb.LayerNorm.gamma": (4,),
            "emb.LayerNorm.beta": (4,),
            "blk.ls1.gamma": (4,),
            "blk.beta": (1,),
            "alphabeta.weight": (2,),
        }
    )
    renamed = {"emb.LayerNorm.gamma": "emb.LayerNorm.weight", "emb.LayerNorm.beta": "emb.LayerNorm.bias"}
    load_and_save(tmp_path, rules, file, {renamed.get(name, name): array for name, array in file.items()})


@pytest.mark.case("C13")
def test_c13_nothing_vanishes_where_a_prefix_is_given_back_to_one_name_only(tmp_path: Path) -> None:
    """C13: `^model\\.` is stripped and restored for one name.

    Chosen: everything is assigned, and the report names each tensor and the rule that was set aside.
    """
    strip, restore = (
        WeightRenaming(r"^model\.", ""),
        WeightRenaming("^embed_tokens.weight", "model.embed_tokens.weight"),
    )
    file = t0()
    load_and_save(tmp_path, [strip, restore], file, file)
    report = plan_of(tmp_path / "in", [strip, restore], specs(file)).report
    aside = {record.name: record.rule for record in report.set_aside}
    assert aside["model.norm.weight"] == strip.title()
    assert set(aside) == {name for name in file if name.startswith("model.") and "embed_tokens" not in name}
    assert not report.missing and not report.unexpected


@pytest.mark.case("C14")
def test_c14_a_lookahead_is_not_written_into_a_name(tmp_path: Path) -> None:
    """C14: three names there and three back, without pattern text."""
    rules: list[Rule] = [
        WeightRenaming("^visual", "model.visual"),
        WeightRenaming(r"^model(?!\.(language_model|visual))", "model.language_model"),
    ]
    file = filled({"visual.blocks.0.w": (2,), "model.layers.0.w": (3,), "lm_head.weight": (4,)})
    names = ["model.visual.blocks.0.w", "model.language_model.layers.0.w", "lm_head.weight"]
    params: dict[str, np.ndarray] = dict(zip(names, file.values(), strict=True))
    load_and_save(tmp_path, rules, file, params)
    save_plan(rules, specs(params)).save(to_mlx(params), tmp_path / "fresh")
    assert names_in(tmp_path / "fresh") == set(file)
